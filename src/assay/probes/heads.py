"""Probes of attention heads: sections, coreference, negation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.data.annotated import Negated, Pronoun, mentions, negated, treebank
from assay.data.batches import Tokenised, by_tokens, collate
from assay.data.examples import Item, Span, sample
from assay.errors import AssayError, unknown
from assay.intervene.edits import Prune
from assay.metrics.intervals import shares
from assay.models import budget
from assay.models.hf_body import Body
from assay.models.hf_models import Pretrained
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.textmodel import predict
from assay.probes.observation import (
    DRAWS,
    Maps,
    PerWord,
    TreebankView,
    aligned,
    best_head,
    examples,
    grid,
    head_count,
    maps,
    observe,
    read_words,
    spread,
    view_treebank,
)
from assay.probes.relations import OFFSETS, pairs, relations, speech
from assay.types import Batch, Edit

# Coreference probe: whether a pronoun attends to its antecedent rather than to another name

SMALLEST = 1e-9  # of the attention given to a name, so that its logarithm is finite


@dataclass(frozen=True)
class NameAttention:
    """N pronouns: the attention of each head to the two names, which one is right, and which is nearer."""

    weights: Float[np.ndarray, "N K 2"]
    right: PerWord
    nearer: PerWord
    layers: int

    def hits(self, right: PerWord) -> Bool[np.ndarray, "N K"]:
        """Whether more attention goes to the right name; ties count as wrong."""
        first, second = self.weights[..., 0], self.weights[..., 1]
        return np.where(right[:, None] == 0, first > second, second > first)

    @property
    def confusion(self) -> Float[np.ndarray, " K"]:
        """The binary cross-entropy of the attention normalised over both names; Lin, Tan and Frank (2019)."""
        both = self.weights.astype(np.float64) + SMALLEST
        share = np.take_along_axis(both, self.right[:, None, None], axis=2)[..., 0] / both.sum(-1)
        return np.asarray(-np.log(share).mean(0))


def coreference(
    network: Body, tokeniser: SubwordTokeniser, dev: Sequence[Pronoun], test: Sequence[Pronoun], seed: int = 0
) -> dict[str, Any]:
    """The accuracy of the head that is best on dev at attending to the right name, on test.

    After Clark et al. (2019), section 4.3, with names to choose from. In the control the right name is drawn.
    """
    first, second = (
        choices(network, tokeniser, each, f"Pronouns, {name}") for each, name in ((dev, "dev"), (test, "test"))
    )
    hits = second.hits(second.right)
    random = np.random.default_rng([seed, 6])
    controls = []
    for _ in range(DRAWS):
        drawn = [part.hits(random.integers(0, 2, len(part.right))).mean(0) for part in (first, second)]
        controls.append(float(drawn[1][drawn[0].argmax()]))
    return {
        **best_head(first.hits(first.right), hits, np.arange(len(hits)), second.layers),
        "nearest_accuracy": float((second.nearer == second.right).mean()),
        "control_accuracy": spread(controls).share,
        "confusion": grid(second.confusion, second.layers),
        "best_confusion": float(second.confusion[first.confusion.argmin()]),
    }


def choices(network: Body, tokeniser: SubwordTokeniser, texts: Sequence[Pronoun], title: str) -> NameAttention:
    """The attention from pronouns to names; texts are skipped where these do not fit into the model together."""
    shown = [each for each in (_cut(text, tokeniser) for text in texts) if each is not None]
    words = [[(start, end) for start, end in _words(each.text, tokeniser)] for each in shown]
    found = aligned([each.text for each in shown], words, tokeniser)
    kept = [(each, spans, row) for each, spans, row in zip(shown, words, found, strict=True) if row is not None]
    if not kept:
        raise AssayError("The model can read no text with its pronoun and both names; probe more of them.")
    rows: list[Tokenised] = [row for _, _, row in kept]
    marks = [[_marked(spans, span) for span in (each.pronoun, *each.candidates)] for each, spans, _ in kept]
    heads = network.layers * head_count(network)
    weights = np.zeros((len(kept), heads, 2), dtype=np.float32)
    for group, seen in maps(network, rows, title):
        weights[group] = _given(seen, [marks[index] for index in group])
    distance = np.array([[_gap(each.pronoun, span) for span in each.candidates] for each, _, _ in kept])
    right = np.array([each.right for each, _, _ in kept], dtype=np.int64)
    return NameAttention(weights, right, distance.reshape(-1, 2).argmin(1), network.layers)


def _given(seen: Maps, marks: list[list[list[int]]]) -> Float[np.ndarray, "B K 2"]:
    """The mean over the pronoun's words of the attention to each name's words."""
    masks = torch.zeros(len(marks), 3, seen.shape[-1])
    for row, each in enumerate(marks):
        for kind, positions in enumerate(each):
            masks[row, kind, positions] = 1.0
    masks = masks.to(seen)
    pronoun = masks[:, 0] / masks[:, 0].sum(-1, keepdim=True)
    given = torch.einsum("bi,blhij,bcj->blhc", pronoun, seen, masks[:, 1:])
    return given.flatten(1, 2).cpu().numpy()


def _marked(words: Sequence[Span], span: Span) -> list[int]:
    """The words that a span overlaps."""
    return [position for position, (start, end) in enumerate(words) if start < span[1] and span[0] < end]


def _gap(one: Span, other: Span) -> int:
    """Characters between two spans."""
    return max(other[0] - one[1], one[0] - other[1])


def _words(text: str, tokeniser: SubwordTokeniser) -> list[Span]:
    return tokeniser.with_options(words=True, truncate=False)([text])[0].spans


def _cut(given: Pronoun, tokeniser: SubwordTokeniser) -> Pronoun | None:
    """The text, cut around pronoun and names to what the model can read; None where that is impossible."""
    spans = tokeniser.with_options(words=False, truncate=False)([given.text])[0].spans
    room = tokeniser.options.longest
    if len(spans) <= room:
        return given
    marked = [position for span in (given.pronoun, *given.candidates) for position in _marked(spans, span)]
    if not marked or max(marked) - min(marked) >= room:
        return None
    centre = _marked(spans, given.pronoun)[0] - room // 2
    first = min(max(centre, max(marked) + 1 - room, 0), min(marked), len(spans) - room)
    start, end = spans[first][0], spans[first + room - 1][1]
    moved = [(span[0] - start, span[1] - start) for span in (given.pronoun, *given.candidates)]
    return Pronoun(given.text[start:end], moved[0], (moved[1], moved[2]), given.right)


# Negation probe: whether the words in the scope of a negation attend to its cue


@dataclass(frozen=True)
class ScopeWords:
    """Q words in scopes: sentence, position, the word that each head attends to most, and the cues of the negation."""

    sentence: Int[np.ndarray, " Q"]
    position: Int[np.ndarray, " Q"]
    most: Int[np.ndarray, "Q K"]
    cue: Bool[np.ndarray, "Q T"]
    real: Bool[np.ndarray, "Q T"]  # the words of the sentence
    case: Int[np.ndarray, " Q"]  # the number of the negation
    layers: int

    def right(self, most: Int[np.ndarray, "Q K"], cue: Bool[np.ndarray, "Q T"]) -> Bool[np.ndarray, "Q K"]:
        """Whether the most attended word is a cue."""
        hit = np.take_along_axis(cue, np.maximum(most, 0).astype(np.int64), axis=1)
        return np.asarray(hit & (most >= 0))

    @property
    def offsets(self) -> Int[np.ndarray, "Q O"]:
        position = self.position[:, None] + np.array(OFFSETS)
        return np.where((position >= 0) & (position < self.real.sum(1)[:, None]), position, -1)

    def other_cue(self, random: np.random.Generator) -> Bool[np.ndarray, "Q T"]:
        """A random word of the sentence in place of the cue, the same for the whole scope."""
        _, first, number = np.unique(self.case, return_index=True, return_inverse=True)
        free = (self.real & ~self.cue)[first]
        chosen = np.where(free, random.random(free.shape), -1).argmax(1)[number]
        return np.asarray(chosen[:, None] == np.arange(self.real.shape[1]))


def negation(
    network: Body, tokeniser: SubwordTokeniser, dev: Sequence[Negated], test: Sequence[Negated], seed: int = 0
) -> dict[str, Any]:
    """The share of words in scope that attend to the cue most, of the head that is best on dev, scored on test.

    Zhao and Bethard (2020). In the control a random word of the sentence stands for the cue.
    """
    parts = [scopes(network, tokeniser, each, f"Negations, {name}") for each, name in ((dev, "dev"), (test, "test"))]
    first, second = (part.right(part.most, part.cue) for part in parts)
    near, far = (part.right(part.offsets, part.cue) for part in parts)
    offset = int(near.mean(0).argmax())
    random = np.random.default_rng([seed, 5])
    controls = [_control(parts, random) for _ in range(DRAWS)]
    return {
        **best_head(first, second, parts[1].sentence, parts[1].layers),
        "sentences": len(np.unique(parts[1].sentence)),
        "offset": OFFSETS[offset],
        "offset_accuracy": float(far[:, offset].mean()),
        "control_accuracy": spread(controls).share,
    }


def _control(parts: list[ScopeWords], random: np.random.Generator) -> float:
    """The dev score of the head that is best at random cues; a word is never its own cue."""
    shares: list[np.ndarray] = []
    for part in parts:
        cue = part.other_cue(random)
        asked = ~cue[np.arange(len(cue)), part.position]
        shares.append(part.right(part.most, cue)[asked].mean(0))
    return float(shares[1][shares[0].argmax()])


def scopes(network: Body, tokeniser: SubwordTokeniser, sentences: Sequence[Negated], title: str) -> ScopeWords:
    """All words in scopes; words and cues without a subword of their own are left out."""
    found = aligned([each.text for each in sentences], [each.spans for each in sentences], tokeniser)
    rows = [row for row in found if row is not None]
    kept = [sentence for sentence, row in zip(sentences, found, strict=True) if row is not None]
    seen = observe(network, rows, title=title)
    there = [read_words(row) for row in rows]
    starts = np.cumsum([0, *(len(each.words) for each in kept)])
    width = max((len(each.words) for each in kept), default=1)
    asked = [
        (number, position, case, negation.cue)
        for number, sentence in enumerate(kept)
        for case, negation in enumerate(sentence.negations)
        for position in negation.scope
        if there[number][position] and any(there[number][cue] for cue in negation.cue)
    ]
    if not asked:
        raise AssayError("None of the sentences has a word in the scope of a negation; probe more of them.")
    number, position, case = (np.array([each[part] for each in asked], dtype=np.int64) for part in range(3))
    cue = np.zeros((len(asked), width), dtype=bool)
    for question, (_, _, _, positions) in enumerate(asked):
        cue[question, list(positions)] = True
    lengths = np.array([len(each.words) for each in kept], dtype=np.int64)
    real = np.arange(width) < lengths[number][:, None]
    return ScopeWords(
        number, position, seen.most[starts[number] + position], cue, real, number * 100 + case, seen.layers
    )


# Head importance and pruning: gradients by head gates, and accuracy as heads are removed

Ticked = Callable[[float], None]
Heads = Float[np.ndarray, "L H"]


@dataclass(frozen=True)
class Pruning:
    """Options: the number of `steps` in which all heads are removed, and of random orders beside the two sorted ones.

    Where it is `normalised`, the importance of a head is divided by the norm of those in its layer, as Michel et al.
    (2019) do before they compare heads of different layers.
    """

    steps: int = 10
    draws: int = 3
    normalised: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.draws < 1:
            raise AssayError("Heads are pruned in at least one step, beside at least one random order.")


@dataclass(frozen=True, eq=False)
class Gated:
    """Edit that multiplies each head's attention weights by a gate, one set of gates an example."""

    gates: Float[Tensor, "B L H"]

    def at(self, layer: int) -> Edit:
        return partial(_times, self.gates[:, layer])

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        """Unchanged: attention that pools has no heads."""
        return weights


def _times(gates: Tensor, weights: Float[Tensor, "B H *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B H *Q T"]:
    # where positions may attend to different others, each position of an example comes as a row of its own
    rows = gates.repeat_interleave(len(weights) // len(gates), dim=0).to(weights)
    return weights * rows.reshape(*rows.shape, *[1] * (weights.ndim - 2))


def importance(
    network: Pretrained, rows: Sequence[Tokenised], normalised: bool = False, ticked: Ticked = lambda share: None
) -> Heads:
    """The mean over texts of |∂L/∂ξ_h|, ξ_h being a gate on the weights of head h; Michel et al. (2019), equation 2.

    Every text has gates of its own, so one backward pass gives the derivatives of all heads for all texts of a batch.
    """
    heads = int(network.inner.config.num_attention_heads)
    total = np.zeros((network.layers, heads))
    was_training = network.training
    network.eval()
    for batch in _batches(network, rows):
        total += gate_gradients(network, batch, heads).abs().sum(0).double().cpu().numpy()
        ticked(len(batch) / len(rows))
    network.train(was_training)
    mean = total / len(rows)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-300) if normalised else mean


def gate_gradients(network: Pretrained, batch: Batch, heads: int) -> Float[Tensor, "B L H"]:
    """The gradient of each text's cross-entropy by each head's gate, where all gates are 1."""
    with torch.enable_grad():
        x = network.embed(batch).detach()
        precise = x.dtype if x.dtype.itemsize >= 4 else torch.float32
        gates = torch.ones(len(batch), network.layers, heads, device=x.device, dtype=precise, requires_grad=True)
        logits = network(x, batch, Gated(gates)).logits
        loss = F.cross_entropy(logits.to(precise), batch.labels, reduction="sum")
        (found,) = torch.autograd.grad(loss, gates)
    return found


def _batches(network: Pretrained, rows: Sequence[Tokenised]) -> Iterator[Batch]:
    lengths = np.array([len(row.ids) for row in rows])
    for group in by_tokens(lengths, budget.room(network.device, "head gradients")):
        yield collate([rows[index] for index in group], network.classes).to(network.device)


def right(
    network: Pretrained, rows: Sequence[Tokenised], pruned: Int[np.ndarray, " k"], heads: int
) -> Float[np.ndarray, " N"]:
    """1 for each text that is classified correctly without the pruned heads, else 0."""
    edit = Prune([divmod(int(index), heads) for index in pruned])
    answers = predict(network, rows, lambda batch: edit).argmax(-1)
    return np.asarray(answers == np.array([row.label for row in rows]), dtype=np.float64)


def curve(
    network: Pretrained,
    rows: Sequence[Tokenised],
    found: Heads,
    options: Pruning = Pruning(),  # noqa: B008
    ticked: Ticked = lambda share: None,
) -> list[dict[str, float | int]]:
    """Accuracy as heads are removed: least important first, in random orders, and most important first.

    The interval is that of the first, over texts; `random` is the mean over the draws.
    """
    size, heads = found.size, found.shape[1]
    counts = [round(step * size / options.steps) for step in range(options.steps + 1)]
    least = np.argsort(found.ravel(), kind="stable")
    generator = np.random.default_rng(options.seed)
    orders = [least, np.flip(least).copy(), *(generator.permutation(size) for _ in range(options.draws))]
    points = []
    for count in counts:
        first = right(network, rows, least[:count], heads)
        # without any head or without all, the order makes no difference
        same = count in (0, size)
        others = [first if same else right(network, rows, order[:count], heads) for order in orders[1:]]
        interval = shares(first[:, None])
        points.append(
            {
                "pruned": count,
                "share": count / size,
                "accuracy": float(first.mean()),
                "low": float(interval.low[0]),
                "high": float(interval.high[0]),
                "random": float(np.mean(others[1:])),
                "reverse": float(others[0].mean()),
            }
        )
        ticked(1 / len(counts))
    return points


def pruned(
    network: Pretrained,
    dev: Sequence[Tokenised],
    test: Sequence[Tokenised],
    options: Pruning = Pruning(),  # noqa: B008
    ticked: Ticked = lambda share: None,
) -> dict[str, Any]:
    """The importance of every head on the dev texts, and the accuracy on the test texts as heads are removed by it."""
    if not dev or not test:
        raise AssayError("Head importance needs dev and test texts that fit into the model; this corpus has none.")
    found = importance(network, dev, options.normalised, lambda share: ticked(0.3 * share))
    points = curve(network, test, found, options, lambda share: ticked(0.7 * share))
    labels = np.array([row.label for row in test])
    return {
        "n": len(test),
        "n_dev": len(dev),
        "importance": found.tolist(),
        "curve": points,
        "accuracy": points[0]["accuracy"],
        "majority": float(np.bincount(labels).max() / len(labels)),
        "draws": options.draws,
        "normalised": options.normalised,
    }


# Probes: what every layer and head of a transformer attends to, beside chance and simple rules

PROBES = {
    "speech": "How much of the attention of every head goes to words of each part of speech.",
    "relations": "Which head attends from a word to its governor, or back, for each grammatical relation.",
    "coreference": "Whether a pronoun attends to the name that it stands for rather than to another.",
    "negation": "Whether the words in the scope of a negation attend to its cue.",
    "pairs": "Whether all heads together tell which word governs which, and in what relation.",
}
"""The sections of a probe, with the question of each."""

SPLITS = ("dev", "test")
GRAMMAR: dict[str, Callable[[TreebankView, TreebankView, int], Any]] = {
    "speech": lambda dev, test, seed: speech(test, seed),
    "relations": relations,
    "pairs": pairs,
}
"""The sections about a treebank."""


def probe(
    network: Body, tokeniser: SubwordTokeniser, sections: Sequence[str], limit: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """The results of the sections as JSON values; `limit` samples so many sentences of each set, None takes all."""
    for name in sections:
        if name not in PROBES:
            raise unknown("section of a probe", name, PROBES)
    if limit is not None and limit < 1:
        raise AssayError(f"A probe needs at least one sentence, got {limit}; leave the limit out for all.")
    answers: dict[str, Any] = {}
    drawn: list[dict[str, Any]] = []
    if set(GRAMMAR) & set(sections):
        dev, test = (
            view_treebank(network, tokeniser, _sample(treebank(split), limit, seed), seed, f"Treebank, {split}")
            for split in SPLITS
        )
        answers = {name: ask(dev, test, seed) for name, ask in GRAMMAR.items() if name in sections}
        drawn = examples(network, tokeniser, test.sentences, answers.get("relations", []))
    if "coreference" in sections:
        names = [_sample(mentions(split), limit, seed) for split in SPLITS]
        answers["coreference"] = coreference(network, tokeniser, names[0], names[1], seed)
    if "negation" in sections:
        denied = [_sample(negated(split), limit, seed) for split in SPLITS]
        answers["negation"] = negation(network, tokeniser, denied[0], denied[1], seed)
    return {
        "layers": network.layers,
        "heads": head_count(network),
        "sections": {name: answers[name] for name in PROBES if name in answers},
        "examples": drawn,
    }


def _sample(items: Sequence[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    return tuple(items) if limit is None else sample(items, limit, seed)
