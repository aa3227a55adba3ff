"""SelfExplain classifier: which of its phrases matter, and which training phrases are similar to the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.errors import AssayError
from assay.rationales.concepts.explained import Explained, accounts
from assay.rationales.concepts.phrases import Phrases
from assay.rationales.concepts.store import Store
from assay.rationales.decoding import Decoding
from assay.rationales.players import Reader, redrawn
from assay.rationales.selecting import Selecting, without_others
from assay.rationales.stories import TELLING
from assay.rationales.units import Grouping
from assay.types import Batch, Edit, Output, Selection


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


class SelfExplaining(Selecting):
    """SelfExplain (Rajagopal et al., 2021): a layer over the text's phrases, and one over similar stored phrases.

    A phrase says W (g(h_j) − g(u)) for its mean state h_j, the pooled state u of the text and g = ReLU; the mean over
    phrases is the local answer. The stored phrases with the largest q · u answer V q, weighed by an attention; that is
    the global answer. Both are added to what is read of the text, so they explain what they take part in. Selected are
    the phrases that say most for the answer.
    """

    # differs from Rajagopal et al. (2021): answers are added up, as their code does but not their paper; a phrase has
    # the mean of its states, not the sum; one attention over the stored phrases alone, so that each has a contribution;
    # the store is encoded by the network itself and anew while it learns

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
    def embedding(self) -> nn.Module:  # type: ignore[override]
        return self.reader.embedding

    @property
    def classes(self) -> int:
        return self.reader.classes

    @property
    def paired(self) -> bool:
        return self.reader.paired

    @property
    def ordinary(self) -> int:
        return self.reader.ordinary

    @property
    def facts(self) -> dict[str, str]:
        description = f"phrases, and {len(self.store):,} stored ones, for: {self.reader.facts['description']}"
        return {"description": description, "shape": "self-explaining", "items": "words"}

    @property
    def json(self) -> dict[str, Any]:
        """Its options, besides the reader and tensors, as JSON values."""
        parts = {name: asdict(getattr(self, name)) for name in ("phrases", "shares", "decoding")}
        return parts | {"texts": list(self.store.texts)}

    @classmethod
    def of(cls, stored: Mapping[str, Any], reader: Reader, tensors: Mapping[str, Tensor]) -> SelfExplaining:
        """A model with stored options; tensors are still to be loaded."""
        ids, pieces = tensors["store.ids"], tensors.get("store.pieces")
        if len(ids) != len(stored["texts"]):
            raise ValueError("there are not as many stored phrases as their texts")
        store = Store(stored["texts"], ids, pieces, reader.decoder.in_features)
        cut = Phrases(stored["phrases"]["width"], tuple(stored["phrases"]["stops"]))
        return cls(reader, store, cut, Shares(**stored["shares"]), Decoding(**stored["decoding"]))

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
            tensors = {f"store.{name}": each for name, each in self.store.named_buffers()}
            fresh = type(self).of(self.json, redrawn(self.reader, seed), tensors)
        fresh.to(self.local.weight)
        fresh.refresh()
        return fresh.eval()

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        return self.reader.embed(batch)

    def blank(self, name: str) -> Float[Tensor, " D"]:
        return self.reader.blank(name)

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        explained = self.explained(x, batch, edit)
        return self.counted(Output(explained.logits, (explained.weights,)))

    def explained(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Explained:
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
    def relevance(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]:
        """The contribution of each word to each logit: that of its phrase, split evenly among its words."""
        explained = self.explained(x, batch)
        each: Tensor = explained.phrases / explained.grouping.sizes.clamp(min=1)[..., None]
        return explained.grouping.expanded(each.mT).mT

    @torch.no_grad()
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
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
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the words of the selected phrases, for the rest, or for all."""
        answer: Output = self(*without_others(x, batch, self.selection(x, batch).kept, view))
        return answer.logits

    @torch.no_grad()
    def accounts(self, x: Float[Tensor, "B T D"], batch: Batch) -> list[dict[str, Any]]:
        """The contributions of the whole text, its strongest phrases and the nearest stored ones."""
        return accounts(self.explained(x, batch), batch, self.store.texts)

    def refresh(self) -> None:
        """Encodes the stored phrases with the present weights."""
        self.store.refresh(self.reader)
