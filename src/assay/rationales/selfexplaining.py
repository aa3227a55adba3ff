"""SelfExplain classifier: which of its phrases matter, and which training phrases are similar to the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, collate
from assay.data.text import Reading
from assay.errors import AssayError
from assay.rationales.game import Embedded
from assay.rationales.players import Reader, evaluating, redrawn
from assay.rationales.rationaliser import OverReader, Stored
from assay.rationales.selection_stories import TELLING
from assay.rationales.units import Decoding, Grouping
from assay.types import Batch, Edit, Output, Selection

MARKS = '.,;:!?()[]"“”…–—'


@dataclass(frozen=True)
class Phrases:
    """A phrase ends with a punctuation mark, one of the `stops`, or after `width` words."""

    # differs from Rajagopal et al. (2021): they take the constituents that a parser finds; none is needed here

    width: int = 5
    stops: tuple[int, ...] = ()  # their ids

    def __post_init__(self) -> None:
        if self.width < 1:
            raise AssayError(f"A phrase must have at least one word, got {self.width}.")

    def __call__(self, batch: Batch) -> Grouping:
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)
        ends = self.stopped(batch)
        begins = torch.cat([torch.ones_like(ends[:, :1]), ends[:, :-1]], dim=1)
        first = (positions * begins).cummax(-1).values  # of the stretch that each word stands in
        begins = (positions - first) % self.width == 0
        return Grouping.of(begins.long().cumsum(-1) - 1, batch.mask)

    def stopped(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """Which words are punctuation marks."""
        return torch.isin(batch.ids, torch.tensor(self.stops, dtype=torch.long, device=batch.ids.device))


def phrases(tokeniser: Reading, width: int = 5) -> Phrases:
    """Phrases by the marks as the tokeniser knows them."""
    found = {words.ids[-1] for words in tokeniser([*MARKS, *(f"a{mark}" for mark in MARKS)]) if len(words.ids)}
    unknown = {words.ids[-1] for words in tokeniser(["a", "\u2603"]) if words.ids}
    return Phrases(width, tuple(sorted(found - unknown)))


AT_ONCE = 512  # phrases encoded together

Key = tuple[tuple[int, ...], ...]
"""The ids of the words of a phrase, or the subwords of each."""


class Store(nn.Module):
    """N phrases as texts, ids (or subword ids) and vectors; vectors are 0 until encoded."""

    ids: Tensor
    pieces: Tensor | None
    vectors: Tensor

    def __init__(self, texts: Sequence[str], ids: Int[Tensor, "N W"], pieces: Int[Tensor, "N W P"] | None, size: int):
        super().__init__()
        self.texts = tuple(texts)
        self.register_buffer("ids", ids)  # -1 on padding
        self.register_buffer("pieces", pieces)
        self.register_buffer("vectors", torch.zeros(len(ids), size))

    def __len__(self) -> int:
        return len(self.texts)

    def batch(self, start: int, stop: int) -> Batch:
        """Some phrases, as a batch of texts."""
        ids = self.ids[start:stop]
        pieces = None if self.pieces is None else self.pieces[start:stop]
        return Batch(ids.clamp(min=0), ids >= 0, torch.zeros_like(ids[:, 0]), subwords=pieces)

    def refresh(self, reader: Reader) -> None:
        """Encodes all phrases with the present weights of the reader."""
        with evaluating(reader), progress.bar() as shown:
            task = shown.add_task("phrases", total=len(self))
            for start in range(0, len(self), AT_ONCE):
                part = pooled(reader, self.batch(start, start + AT_ONCE))
                self.vectors[start : start + AT_ONCE] = part.to(self.vectors)
                shown.advance(task, len(part))

    def nearest(self, vectors: Float[Tensor, "B M"], count: int) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"]]:
        """Indices of the phrases with the largest inner products, largest first, and these products."""
        found = (vectors.to(self.vectors) @ self.vectors.T).topk(min(count, len(self)), dim=-1)
        return found.values, found.indices


def pooled(reader: Reader, batch: Batch) -> Float[Tensor, "B M"]:
    """The attention-weighted mean hidden state of each text."""
    states = reader.states(reader.embed(batch), batch)
    return (reader.attend(states, batch)[:, None] @ states).squeeze(1)


def gathered(rows: Sequence[Tokenised], texts: Sequence[str], cut: Phrases, size: int, limit: int = 2000) -> Store:
    """The most frequent phrases of the training rows, without punctuation; `texts` are those of the rows."""
    counted: Counter[Key] = Counter()
    written: dict[Key, str] = {}
    for row in rows:
        batch = collate([row])
        owner = cut(batch).owner[0].masked_fill(cut.stopped(batch)[0], -1)
        words = row.ids[:, None] if row.subwords is None else row.subwords
        for number in range(int(owner.max()) + 1):
            positions = (owner == number).nonzero()[:, 0]
            if len(positions):
                key = tuple(tuple(piece for piece in word if piece >= 0) for word in words[positions].tolist())
                counted[key] += 1
                begin, end = int(row.spans[positions[0], 0]), int(row.spans[positions[-1], 1])
                written.setdefault(key, texts[row.index][begin:end])
    if not counted:
        raise AssayError("The training texts have no phrase with a word in it, so there is nothing to store.")
    kept = [key for key, _ in counted.most_common(limit)]
    width = max(map(len, kept))
    parts = max(len(word) for key in kept for word in key)
    pieces = torch.full((len(kept), width, parts), -1)
    for index, key in enumerate(kept):
        for word, each in enumerate(key):
            pieces[index, word, : len(each)] = torch.tensor(each)
    whole = rows[0].subwords is None
    return Store([written[key] for key in kept], pieces[..., 0], None if whole else pieces, size)


SHOWN = 5  # phrases of a text that an account has


@dataclass(frozen=True)
class Explained:
    """Terms of the logits: the whole text, its phrases, and the nearest stored phrases.

    `nearest` are indices in the store, `products` their inner products with the text.
    """

    whole: Float[Tensor, "B C"]
    phrases: Float[Tensor, "B U C"]
    neighbours: Float[Tensor, "B K C"]
    nearest: Int[Tensor, "B K"]
    products: Float[Tensor, "B K"]
    grouping: Grouping
    weights: Float[Tensor, "B T"]

    @property
    def logits(self) -> Float[Tensor, "B C"]:
        return self.whole + self.phrases.sum(1) + self.neighbours.sum(1)

    @property
    def spoken(self) -> tuple[Float[Tensor, " B"], Float[Tensor, "B U"], Float[Tensor, "B K"]]:
        """The contributions of text, phrases and stored phrases to the answer, less their mean over classes."""
        answer = self.logits.argmax(-1)
        parts = self.whole[:, None], self.phrases, self.neighbours
        apart = [each - each.mean(-1, keepdim=True) for each in parts]
        whole, phrases, stored = (
            each.gather(2, answer[:, None, None].expand(-1, each.shape[1], 1))[..., 0] for each in apart
        )
        return whole[:, 0], phrases, stored


def accounts(explained: Explained, batch: Batch, texts: Sequence[str]) -> list[dict[str, Any]]:
    """As JSON values: for each text, the contribution of the whole, its strongest phrases and the nearest stored ones.

    A phrase goes from one word up to before another; a stored one is written out, as one of `texts`.
    """
    whole, phrases, stored = (each.tolist() for each in explained.spoken)
    nearest = explained.nearest.tolist()
    owners, real = explained.grouping.owner.tolist(), explained.grouping.mask.sum(-1).tolist()
    found = []
    for row, length in enumerate(batch.lengths.tolist()):
        words = owners[row][:length]
        ends = [(words.index(unit), length - words[::-1].index(unit)) for unit in range(real[row])]
        own = [{"start": start, "stop": stop, "by": by} for (start, stop), by in zip(ends, phrases[row], strict=False)]
        near = [{"text": texts[index], "by": by} for index, by in zip(nearest[row], stored[row], strict=True)]
        found.append(
            {
                "parts": {"whole": whole[row], "phrases": sum(phrases[row]), "stored": sum(stored[row])},
                "phrases": _strongest(own)[:SHOWN],
                "stored": _strongest(near),
            }
        )
    return found


def _strongest(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(said, key=lambda each: -each["by"])


@dataclass(frozen=True)
class Shares:
    """Weights of the two explanations in the decision, and the number of neighbours.

    The defaults are those of the code of Rajagopal et al. (2021).
    """

    local: float = 0.1
    shared: float = 0.1
    neighbours: int = 5

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise AssayError(f"The number of neighbours must be at least 1, got {self.neighbours}.")


class SelfExplaining(OverReader):
    """SelfExplain (Rajagopal et al., 2021): a layer over the text's phrases, and one over similar stored phrases.

    A phrase says W (g(h_j) − g(u)) for its mean state h_j, the pooled state u of the text and g = ReLU; the mean over
    phrases is the local answer. The stored phrases with the largest q · u answer V q, weighed by an attention; that is
    the global answer. Both are added to what is read of the text, so they explain what they take part in. Selected are
    the phrases that say most for the answer.
    """

    # differs from Rajagopal et al. (2021): answers are added up, as their code does but not their paper; a phrase has
    # the mean of its states, not the sum; one attention over the stored phrases alone, so that each has a contribution;
    # the store is encoded by the network itself and anew while it learns

    kind = "selfexplain"
    inner = "reader.inner."
    attends = True
    steps: Tensor

    def __init__(
        self,
        reader: Reader,
        store: Store,
        phrases: Phrases,
        shares: Shares | None = None,
        decoding: Decoding | None = None,
    ) -> None:
        super().__init__()
        self.reader, self.store, self.phrases, self.shares = reader, store, phrases, shares or Shares()
        self.decoding = decoding or Decoding()
        size, classes = reader.decoder.in_features, reader.classes
        self.local = nn.Linear(size, classes, bias=False)
        self.query = nn.Linear(size, size, bias=False)
        self.shared = nn.Linear(size, classes, bias=False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))  # of training, since the start
        self.to(reader.decoder.weight.device)

    @property
    def base(self) -> Reader:
        return self.reader

    @property
    def facts(self) -> dict[str, str]:
        description = f"phrases, and {len(self.store):,} stored ones, for: {self.reader.facts['description']}"
        return {"description": description, "shape": "self-explaining", "items": "words"}

    @property
    def described(self) -> dict[str, Any]:
        parts = {name: asdict(getattr(self, name)) for name in ("phrases", "shares", "decoding")}
        return {"explaining": parts | {"texts": list(self.store.texts)}}

    @classmethod
    def of(cls, stored: Stored) -> SelfExplaining:
        options, reader = stored.card["explaining"], stored.reader(stored.words)
        ids, pieces = stored.tensors["store.ids"], stored.tensors.get("store.pieces")
        if len(ids) != len(options["texts"]):
            raise ValueError("there are not as many stored phrases as their texts")
        store = Store(options["texts"], ids, pieces, reader.decoder.in_features)
        cut = Phrases(options["phrases"]["width"], tuple(options["phrases"]["stops"]))
        return cls(reader, store, cut, Shares(**options["shares"]), Decoding(**options["decoding"]))

    @property
    def selecting(self) -> dict[str, Any]:
        return {
            "units": {"kind": "phrase", "width": self.phrases.width},
            "rule": "telling",
            "rate": self.decoding.rate,
            "meaning": TELLING,
            "masks": 1,
            "reading": "delete",
        }

    @property
    def reads(self) -> str:
        return "all"

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("explanations", *self.reader.cascade)

    def part(self, name: str) -> nn.Module:
        if name == "explanations":
            return nn.ModuleList([self.local, self.query, self.shared])
        return self.reader.part(name)

    def redrawn(self, seed: int) -> SelfExplaining:
        """The same architecture with random weights and the same stored phrases."""
        with torch.random.fork_rng():
            torch.manual_seed(seed + 1)
            store, reader = self.store, redrawn(self.reader, seed)
            phrases = Store(store.texts, store.ids, store.pieces, store.vectors.shape[1])
            fresh = type(self)(reader, phrases, self.phrases, self.shares, self.decoding)
        fresh.to(self.local.weight)
        fresh.refresh()
        return fresh.eval()

    def forward(self, x: Embedded, batch: Batch, edit: Edit | None = None) -> Output:
        explained = self.explained(x, batch, edit)
        return self.counted(Output(explained.logits, (explained.weights,)))

    def explained(self, x: Embedded, batch: Batch, edit: Edit | None = None) -> Explained:
        """The terms of the logits; an edit changes the attention that pools the words."""
        states = self.reader.states(x, batch)
        weights = self.reader.attend(states, batch)
        if edit is not None:
            weights = edit(weights, batch.mask)
        text = (weights[:, None] @ states).squeeze(1)
        grouping = self.phrases(batch)
        products, nearest = self.store.nearest(text.detach(), self.shares.neighbours)
        return Explained(
            self.reader.decode(states, weights),
            self._phrases(states, text, grouping),
            self._neighbours(text, nearest),
            nearest,
            products,
            grouping,
            weights,
        )

    def _phrases(
        self, states: Float[Tensor, "B T M"], text: Float[Tensor, "B M"], grouping: Grouping
    ) -> Float[Tensor, "B U C"]:
        apart = grouping.pooled(states).relu() - text.relu()[:, None]
        shares = grouping.mask / grouping.mask.sum(-1, keepdim=True).clamp(min=1)
        said: Tensor = self.local(apart)
        return self.shares.local * said * shares[..., None].to(said)

    def _neighbours(self, text: Float[Tensor, "B M"], nearest: Int[Tensor, "B K"]) -> Float[Tensor, "B K C"]:
        vectors = self.store.vectors[nearest].to(text)
        scores = (vectors @ self.query(text)[..., None]).squeeze(-1) / text.shape[-1] ** 0.5
        said: Tensor = self.shared(vectors) * scores.softmax(-1)[..., None]
        return self.shares.shared * said

    @torch.no_grad()
    def relevance(self, x: Embedded, batch: Batch) -> Float[Tensor, "B T C"]:
        """The contribution of each word to each logit: that of its phrase, split evenly among its words."""
        explained = self.explained(x, batch)
        each: Tensor = explained.phrases / explained.grouping.sizes.clamp(min=1)[..., None]
        return explained.grouping.expanded(each.mT).mT

    @torch.no_grad()
    def selection(self, x: Embedded, batch: Batch) -> Selection:
        """The words of the phrases that contribute most to the answer.

        The model reads all words, so this explains its answer and is not what it rests on.
        """
        explained = self.explained(x, batch)
        said = explained.spoken[1].double().sigmoid()[:, None]
        kept, chance = (
            explained.grouping.expanded(each)[:, 0] for each in (self.decoding(said, explained.grouping.mask), said)
        )
        return Selection(kept > 0, chance)

    @torch.no_grad()
    def accounts(self, x: Embedded, batch: Batch) -> list[dict[str, Any]]:
        """The contributions of the whole text, its strongest phrases and the nearest stored ones."""
        return accounts(self.explained(x, batch), batch, self.store.texts)

    def refresh(self) -> None:
        """Encodes the stored phrases with the present weights."""
        self.store.refresh(self.reader)
