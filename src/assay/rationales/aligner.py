"""Classifier of pairs that decides by aligned words alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.text import SPECIAL
from assay.errors import AssayError
from assay.models.config import Architecture
from assay.models.encoders import encoder
from assay.models.network import blank_of
from assay.rationales.selecting import Selecting, without_others
from assay.rationales.stories import aligned
from assay.rationales.transport import Transport
from assay.rationales.units import Units
from assay.types import Batch, Edit, Output, Selection

LEAST = 1e-6  # added under a root, which has no gradient at 0


class Votes(nn.Module):
    """Scores of two aligned words for each class: V relu(A u + B w + Cu ⊙ Dw)."""

    def __init__(self, size: int, width: int, classes: int) -> None:
        super().__init__()
        self.text, self.query = nn.Linear(size, 2 * width), nn.Linear(size, 2 * width, bias=False)
        self.out = nn.Linear(width, classes, bias=False)

    def forward(self, text: Float[Tensor, "B T M"], query: Float[Tensor, "B S M"]) -> Float[Tensor, "B T S C"]:
        (alone, matched), (asked, met) = self.text(text).chunk(2, -1), self.query(query).chunk(2, -1)
        votes: Tensor = self.out(F.relu(alone[:, :, None] + asked[:, None] + matched[:, :, None] * met[:, None]))
        return votes


class Aligner(Selecting):
    """Aligns few words of a text with words of a query, and sums the class scores of the aligned pairs.

    Swanson et al. (2020): the alignment is a sparse transport plan, and nothing else reaches the decision. A pair
    gains by how much it says, beside the pair that says most. Once the model has learnt, a pair counts in full where
    more than half of it is aligned, and else not at all, so that what was not selected has not been read.
    """

    # differs from Swanson et al. (2020): they decide by the cost of the plan itself; here a pair says something for
    # each class, since words are aligned that contradict one another as well as those that are alike

    cascade: tuple[str, ...] = ("decoder", "encoder", "embedding")

    embedding: nn.Embedding

    def __init__(self, architecture: Architecture, words: int, classes: int, transport: Transport) -> None:
        super().__init__()
        self.architecture, self.transport = architecture, transport
        self.embedding = nn.Embedding(words, architecture.embedding, padding_idx=0)
        self.encoder = encoder(architecture.encoder, architecture.embedding, architecture.hidden)
        size, width = self.encoder.size, architecture.alignment_size
        self.decoder = Votes(size, width, classes)
        self.bias = nn.Parameter(torch.zeros(classes))

    @property
    def classes(self) -> int:
        return len(self.bias)

    @property
    def paired(self) -> bool:
        return True

    @property
    def ordinary(self) -> int:
        return len(SPECIAL)

    @property
    def vectors(self) -> Float[Tensor, "V D"]:
        return self.embedding.weight

    @property
    def facts(self) -> dict[str, str]:
        described = f"alignment of words over: {self.architecture.encoder} encoder, sum over aligned pairs"
        return {"description": described, "shape": "alignment", "items": "words"}

    @property
    def selecting(self) -> dict[str, Any]:
        return {
            "units": asdict(Units()),
            "rule": "aligned",
            "meaning": aligned(self.transport.most, self.transport.price),
            "masks": 1,
            "reading": "delete",
            "transport": asdict(self.transport),
        }

    @property
    def reads(self) -> str:
        return "selected"

    def part(self, name: str) -> nn.Module:
        part: nn.Module = getattr(self, name)
        return part

    def redrawn(self, seed: int) -> Aligner:
        """The same architecture with random weights."""
        fresh = drawn(self.architecture, self.transport, len(self.vectors), self.classes, seed)
        return fresh.to(self.vectors).eval()

    def blank(self, name: str) -> Float[Tensor, " D"]:
        return blank_of(self.vectors, name)

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        """The prediction; there is no attention to edit."""
        votes = self.votes(x, batch)
        plan = self._plan(votes, batch)
        plan = plan if self.training else (plan > 0.5).to(plan)
        return self.counted(Output((plan[..., None] * votes).sum((1, 2)) + self.bias, ()))

    def votes(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T S C"]:
        """The scores of each pair of words for each class."""
        if batch.query is None:
            raise AssayError(
                "This model reads pairs; give it a text and a question or hypothesis (--query), or texts of which the "
                "second line is one (--parted)."
            )
        text = self.encoder(x, batch.mask)
        query = self.encoder(self.embedding(batch.query.ids), batch.query.mask)
        votes: Tensor = self.decoder(text, query)
        return votes

    def alignment(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T S"]:
        """The alignment weight of each pair of words."""
        return self._plan(self.votes(x, batch), batch)

    @torch.no_grad()
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
        """The words of the text that are aligned with any of the query."""
        plan = self.alignment(x, batch)
        return Selection((plan > 0.5).any(-1), plan.sum(-1).clamp(max=1))

    @torch.no_grad()
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the aligned words, for the rest, or for all; the view is aligned anew."""
        answer: Output = self(*without_others(x, batch, self.selection(x, batch).kept, view))
        return answer.logits

    @torch.no_grad()
    def accounts(self, x: Float[Tensor, "B T D"], batch: Batch) -> list[dict[str, Any]]:
        """The aligned pairs with their scores for each class, above the mean."""
        votes = self.votes(x, batch)
        apart = votes - votes.mean(-1, keepdim=True)
        rows, words, asked = (self._plan(votes, batch) > 0.5).nonzero(as_tuple=True)
        found: list[dict[str, Any]] = [{"aligned": []} for _ in range(len(batch))]
        parts = (rows, words, asked, apart[rows, words, asked])
        for row, *pair in zip(*(each.tolist() for each in parts), strict=True):
            found[row]["aligned"].append(dict(zip(("word", "asked", "votes"), pair, strict=True)))
        return found

    def _plan(self, votes: Float[Tensor, "B T S C"], batch: Batch) -> Float[Tensor, "B T S"]:
        """The transport plan; a pair's gain is its largest score, so that none can decide while hardly aligned."""
        assert batch.query is not None
        apart = votes - votes.mean(-1, keepdim=True)
        there = batch.mask[:, :, None] & batch.query.mask[:, None, :]
        gain = (apart.square().sum(-1) + LEAST).sqrt() * there
        most = gain.detach().amax((1, 2), keepdim=True).clamp(min=LEAST)
        return self.transport(-gain / most, batch.mask, batch.query.mask)


def drawn(architecture: Architecture, transport: Transport, words: int, classes: int, seed: int) -> Aligner:
    """An untrained model, equal for equal seeds."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Aligner(architecture, words, classes, transport)
        nn.init.normal_(network.embedding.weight, std=0.5)
    with torch.no_grad():
        network.embedding.weight[0] = 0
    return network
