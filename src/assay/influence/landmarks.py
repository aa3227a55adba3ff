"""Landmarks as an influence method, and the sentences that name them (Croce et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.data.batches import Tokenised
from assay.errors import AssayError, unknown
from assay.influence import targets
from assay.influence.landmark_classifier import (
    ACTIVATIONS,
    LandmarkModel,
    LandmarkNetwork,
    LandmarkRecipe,
    train,
)
from assay.influence.landmark_kernels import KERNELS, Kernel, Passages, Represented
from assay.influence.setting import Influence, Setting, Texts, labels_of, refuse
from assay.influence.stories import PARTS
from assay.models.textmodel import TextModel, groups
from assay.stories import with_story
from assay.writing import listed, quoted


@torch.no_grad()
def relevance(network: LandmarkNetwork, likeness: Float[Tensor, "B M"], epsilon: float = 0.0) -> Float[Tensor, "B C M"]:
    """The share of each logit that each landmark has, by the ε rule (Bach et al., 2015).

    With ε = 0 and without biases the parts sum to the logit; biases keep their share. Of a centred network, the part is
    that of what a landmark is more alike than usual.
    """
    if epsilon < 0:
        raise AssayError(f"The ε of relevance propagation must be at least 0, got {epsilon:g}.")
    sums = [network.projected(likeness)]  # what goes into each activation, from below
    activate = ACTIVATIONS[network.layers.activation]
    for number, linear in enumerate(network.linear):
        sums.append(linear(activate(sums[-1]) if number else sums[-1]))
    # Relevances are handed down as multiples of the values that they belong to, which are finite where a value is 0.
    multipliers = torch.diag_embed(_kept(sums[-1], epsilon))
    for number in range(len(network.linear) - 1, -1, -1):
        passed = _activated(sums[number], activate(sums[number]), epsilon) if number else _kept(sums[0], epsilon)
        multipliers = multipliers @ network.weights[number] * passed[:, None]
    sizes = [each.shape[1] for each in network.projections]
    parts = zip(multipliers.split(sizes, dim=-1), network.projections, strict=True)  # type: ignore[no-untyped-call]
    return (
        torch.cat([part @ each.T for part, each in parts], dim=-1) * (likeness - network.usual)[:, None] * network.scale
    )


def _kept(sums: Float[Tensor, "B K"], epsilon: float) -> Float[Tensor, "B K"]:
    """The factor z / (z + ε sign z)."""
    return sums.abs() / (sums.abs() + epsilon) if epsilon else torch.ones_like(sums)


def _activated(sums: Float[Tensor, "B K"], made: Float[Tensor, "B K"], epsilon: float) -> Float[Tensor, "B K"]:
    """The activation of z divided by z + ε sign z."""
    return made / (sums + epsilon * sums.sign()).where(sums != 0, 1.0)


def contrast(values: Float[Tensor, "B C *M"], classes: Int[Tensor, " B"]) -> Float[Tensor, " B *M"]:
    """The values of a class less the mean over all others: what all share decides nothing."""
    own, count = values[torch.arange(len(values), device=values.device), classes], values.shape[1]
    return own - (values.sum(1) - own) / max(1, count - 1)


@dataclass(frozen=True)
class Reasons:
    """Indices of training texts, the strongest first."""

    alike: list[int]  # of the answer's class, more alike than usual, for the answer
    unlike: list[int]  # of another class, less alike than usual, and so for the answer
    against: list[int]  # of another class, more alike than usual, against the answer


def reasons(model: LandmarkModel, likeness: Float[Tensor, "B M"], answers: Int[Tensor, " B"]) -> list[Reasons]:
    """The landmarks that support each text's answer and no other; those in several sets are summed."""
    # differs from Croce et al. (2019), who say of all that speak against an answer that the text does not recall them:
    # it is like these, and that counts against it.
    own, first, columns = np.unique(model.indices, return_index=True, return_inverse=True)
    parts = contrast(relevance(model.network, likeness), answers.to(likeness.device)).double().cpu().numpy()
    more = (likeness - model.network.usual).double().cpu().numpy()
    total = _summed(parts, columns, len(own))
    nearer = _summed(more, columns, len(own))
    same = model.labels[first] == answers.cpu().numpy()[:, None]
    found = []
    for part, order in enumerate(np.argsort(-total, axis=1, kind="stable")):
        speaks, near, known = (each[part][order] for each in (total, nearer, same))
        alike = own[order[(speaks > 0) & (near > 0) & known]]
        unlike = own[order[(speaks > 0) & (near < 0) & ~known]]
        against = own[order[(speaks < 0) & (near > 0) & ~known]][::-1]
        found.append(Reasons(alike.tolist(), unlike.tolist(), against.tolist()))
    return found


def _summed(values: Float[np.ndarray, "B M"], columns: Int[np.ndarray, " M"], count: int) -> Float[np.ndarray, "B N"]:
    """Sums over the columns of each landmark."""
    found = np.zeros((count, len(values)))
    np.add.at(found, columns, values.T)
    return found.T


Named = tuple[str, str]
"""A text and the name of its class."""


def sentence(answer: str, alike: Sequence[str], unlike: Sequence[Named] = (), against: Sequence[Named] = ()) -> str:
    """“I answer X because it reminds me of …, which is also X, and not of …, which is Y.”

    Texts `against` the answer follow: “although it also reminds me of …, which is Y”.
    """
    if alike:
        also = "which is also" if len(alike) == 1 else "which are also"
        start = (
            f"I answer {answer} because it reminds me of {listed([quoted(text) for text in alike])}, {also} {answer}"
        )
        start += f", and not of {_listed(unlike)}" if unlike else ""
    else:
        start = f"I answer {answer}, and no text that it reminds me of is also {answer}"
    return start + (f", although it also reminds me of {_listed(against)}" if against else "") + "."


def _listed(texts: Sequence[Named]) -> str:
    return listed([f"{quoted(text)}, which is {name}" for text, name in texts])


def because(model: LandmarkModel, text: str, count: int = 1, contrast: bool = False, objection: bool = False) -> str:
    """The sentence that explains the answer to a text by the landmarks that speak most for it.

    With `contrast`, also the one of another class that it is less like than usual and that speaks most for the answer;
    with `objection`, the one that it is like and that speaks most against it.
    """
    if any(not isinstance(each, str) for each in model.texts):
        raise AssayError("The landmarks are rows of word ids, not texts; train on the texts to have sentences.")
    likeness = model.likeness([text])
    answer = int(model.network(likeness)[0].argmax())
    found = reasons(model, likeness, torch.tensor([answer]))[0]
    known = {index: (str(model.texts[j]), model.classes[model.labels[j]]) for j, index in enumerate(model.indices)}
    return sentence(
        model.classes[answer],
        [known[index][0] for index in found.alike[:count]],
        [known[index] for index in found.unlike[: int(contrast)]],
        [known[index] for index in found.against[: int(objection)]],
    )


@dataclass(frozen=True)
class Faithfulness:
    """The mean fall of the answer's lead in logits when its similarity to some landmarks is set to the usual one."""

    named: float  # those that a sentence would name
    alike: float  # as many that the text is most alike to
    chance: float  # as many at random
    above_chance: float  # the share of texts for which the named ones matter more than random ones do on average
    texts: int


@torch.no_grad()
def faithfulness(model: LandmarkModel, texts: Passages, count: int = 1, draws: int = 20, seed: int = 0) -> Faithfulness:
    """Erases the `count` landmarks that are named, the most alike, and random ones, for texts that have reasons."""
    likeness = model.likeness(texts)
    answers = model.network(likeness).argmax(-1)
    alike = [each.alike[:count] for each in reasons(model, likeness, answers)]
    kept = [row for row, names in enumerate(alike) if names]
    if not kept:
        raise AssayError("No landmark of its class speaks for the answer to any of these texts; none can be erased.")
    likeness, answers = likeness[kept], answers[kept]
    sizes = [len(alike[row]) for row in kept]
    random = np.random.default_rng(seed)
    own = np.unique(model.indices)
    nearest = model.indices[np.argsort(-likeness.cpu().numpy(), axis=1, kind="stable")]
    named = _fall(model, likeness, answers, [alike[row] for row in kept])
    close = _fall(
        model, likeness, answers, [list(dict.fromkeys(row.tolist()))[:k] for row, k in zip(nearest, sizes, strict=True)]
    )
    drawn = [
        _fall(model, likeness, answers, [random.choice(own, k, replace=False).tolist() for k in sizes])
        for _ in range(draws)
    ]
    chance = np.mean(drawn, axis=0)
    return Faithfulness(
        float(named.mean()), float(close.mean()), float(chance.mean()), float((named > chance).mean()), len(kept)
    )


def _fall(
    model: LandmarkModel, likeness: Float[Tensor, "B M"], answers: Tensor, erased: Sequence[Sequence[int]]
) -> Float[np.ndarray, " B"]:
    """The fall of the answers' lead without these training texts."""
    gone: Bool[np.ndarray, "B M"] = np.array([np.isin(model.indices, list(each)) for each in erased])
    without = torch.where(torch.from_numpy(gone).to(likeness.device), model.network.usual, likeness)
    before, after = (contrast(model.network(each), answers) for each in (likeness, without))
    fall: Float[np.ndarray, " B"] = (before - after).double().cpu().numpy()
    return fall


def influence(
    model: LandmarkModel,
    texts: Passages,
    classes: Int[np.ndarray, " Q"] | None = None,
    target: str = "logit",
    epsilon: float = 0.0,
) -> Influence:
    """Minus each landmark's relevance: the first-order change of each text's target without it.

    Computed by relevance propagation; 0 for texts that are no landmarks. `covered` is the share of the training texts
    that are. The targets are those of the predicted classes, unless others are given.
    """
    likeness = model.likeness(texts)
    with torch.no_grad():
        logits = model.network(likeness)
    asked = logits.argmax(-1) if classes is None else torch.from_numpy(classes).to(logits.device)
    gradients = targets.logit_gradients(target, logits, asked)
    parts = torch.einsum("qc,qcm->qm", gradients, relevance(model.network, likeness, epsilon)).double().cpu().numpy()
    scores = np.zeros((len(texts), model.learnt))
    np.subtract.at(scores.T, model.indices, parts.T)
    share = len(np.unique(model.indices)) / model.learnt
    cancelled = np.abs(parts).sum(1) / np.maximum(np.abs(parts.sum(1)), 1e-12)
    notes = {
        "landmarks": np.unique(model.indices).tolist(),
        "covered": "share of training texts that are landmarks",
        "cancellation": float(np.median(cancelled)),  # 1 where no part is against another
    }
    return Influence(scores, share, notes=notes)


@with_story("Landmarks", "Croce et al. (2018, 2019); section 3.3 of the survey", like=PARTS)
@dataclass(frozen=True)
class Landmarks:
    """Influence of training texts in a kernel-based classifier (Croce et al., 2018, 2019).

    It trains that classifier itself, on the same rows, and answers about it, not about the given network. With
    `distilled` the classifier learns the network's logits instead of the labels, and the notes say on what share of
    rows that it did not learn from, and of the queries, it answers as the network does. The facts of a query name the
    landmarks that its answer comes from.
    """

    kernel: str = "representations"  # a name of landmark_kernels.KERNELS
    landmarks: int = 200
    distilled: bool = True
    epsilon: float = 0.0
    recipe: LandmarkRecipe | None = None  # all options of the classifier, in place of kernel and number

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise unknown("kernel", self.kernel, KERNELS)

    def unfit(self, setting: Setting) -> str | None:
        if len(setting.train) < 4:
            return "landmarks need at least four training texts"
        if any(row.candidates is not None for row in setting.train):
            return "landmarks answer with any class, and here only some can be right"
        return None

    def __call__(self, setting: Setting) -> Influence:
        """The scores of the classifier's landmarks, 0 for all other rows; see `influence`."""
        refuse(self.unfit(setting))
        model = self.learnt(setting)
        found = influence(model, setting.queries, setting.classes, setting.target, self.epsilon)
        held = [setting.train[index] for index in model.history["held"]]
        notes = {
            "agreement": agreement_with(setting.network, model, setting.queries),
            "agreement_held_out": agreement_with(setting.network, model, held),
            "about": "a classifier of its own",
        }
        likeness = model.likeness(setting.queries)
        answers = model.network(likeness).argmax(-1)
        reasoned = zip(answers.tolist(), reasons(model, likeness, answers), strict=True)
        facts = [{"landmarks": {"answer": answer, **asdict(each)}} for answer, each in reasoned]
        return replace(found, notes={**found.notes, **notes}, facts=facts)

    def learnt(self, setting: Setting) -> LandmarkModel:
        """The landmark classifier, trained on the setting's rows; their order does not matter."""
        recipe = self.recipe or LandmarkRecipe((KERNELS[self.kernel],), landmarks=self.landmarks, cutoff=1e-2)
        recipe = replace(recipe, kernels=tuple(_bound(each, setting.network) for each in recipe.kernels))
        order = sorted(range(len(setting.train)), key=lambda index: _content(setting.train[index]))
        rows = [setting.train[index] for index in order]
        known = logits(setting.network, rows) if self.distilled else None
        names = [str(number) for number in range(setting.network.classes)]
        device = str(setting.network.device)
        model = train(recipe, rows, labels_of(rows), names, logits=known, device=device)
        model.network.double()  # trained in single precision; scores do not hang on how many are asked for at once
        return model.renumbered(np.array(order))


def agreement_with(network: TextModel, model: LandmarkModel, rows: Texts) -> float:
    """The share of rows on which classifier and network agree."""
    theirs, ours = logits(network, rows), model.logits(rows).cpu().numpy()
    return float((theirs.argmax(-1) == ours.argmax(-1)).mean())


def _bound(kernel: Kernel, network: TextModel) -> Kernel:
    """The kernel with the network, where it compares representations and has no network yet."""
    return replace(kernel, network=network) if isinstance(kernel, Represented) and kernel.network is None else kernel


def _content(row: Tokenised) -> tuple[Any, ...]:
    """What a row says, to sort by."""
    asked = [] if row.query is None else row.query.tolist()
    return row.ids.tolist(), asked, row.sentences.tolist(), row.label


@torch.no_grad()
def logits(network: TextModel, rows: Texts) -> Float[np.ndarray, "N C"]:
    """The logits of a network for each row."""
    found = np.zeros((len(rows), network.classes))
    for indices, batch in groups(network, rows):
        found[indices] = network(network.embed(batch), batch).logits.double().cpu().numpy()
    return found
