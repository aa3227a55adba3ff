"""Classifier of pairs that decides by aligned words alone: a sparse alignment by entropic optimal transport."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.text import SPECIAL
from assay.errors import AssayError
from assay.models.config import Architecture
from assay.models.encoders import encoder
from assay.models.network import blank_of
from assay.rationales.game import Embedded
from assay.rationales.rationaliser import Selecting, Stored
from assay.rationales.selection_stories import aligned
from assay.rationales.units import Units
from assay.types import Batch, Edit, Output, Selection, at_least_float32

Cells = Float[Tensor, "B N M"]
RowMasses = Float[Tensor, "B N"]
ColumnMasses = Float[Tensor, "B M"]
PairVotes = Float[Tensor, "B T S C"]  # of each pair of words for each class
Plan = Float[Tensor, "B T S"]

BARRED = (
    -1e30
)  # the logarithm of the mass in a cell that must stay empty; float32 can hold it divided by any softness of use
LOOKS = 10  # steps between two looks at the error: on a GPU each one waits


def sinkhorn(
    cost: Cells,
    rows: RowMasses,
    columns: ColumnMasses,
    epsilon: float = 0.05,
    steps: int = 100,
    tolerance: float = 1e-6,
    barred: Bool[Tensor, "B N M"] | None = None,
) -> Cells:
    """The plan P with these marginals that minimises ⟨P, C⟩ − ε H(P) (Cuturi, 2013), in the log domain.

    ε is lowered from the size of the costs in the first half of the steps (Schmitzer, 2019); where costs are more than
    some hundred times ε, more steps are needed. What is left of the error at the end is put right as in Altschuler et
    al. (2017, algorithm 2), so marginals are exact whatever the number of steps, but something may then stand in cells
    that are `barred`. Rows and columns of no mass get none.
    """
    scores, heights, widths = -cost, _logs(rows), _logs(columns)
    empty = (rows <= 0)[:, :, None] | (columns <= 0)[:, None, :]
    empty = empty if barred is None else empty | barred
    scores = scores.masked_fill(empty, BARRED)
    down, right = torch.zeros_like(rows), torch.zeros_like(columns)  # the duals
    begin = cost.detach().abs().masked_fill(empty, 0.0).amax((1, 2)).clamp(min=epsilon)[:, None]
    for step in range(steps):
        softness = begin * (epsilon / begin) ** min(1.0, 2 * (step + 1) / steps)
        right = softness * (widths - ((scores + down[:, :, None]) / softness[..., None]).logsumexp(1))
        right = torch.where(columns > 0, right, 0.0)
        down = softness * (heights - ((scores + right[:, None, :]) / softness[..., None]).logsumexp(2))
        down = torch.where(rows > 0, down, 0.0)
        if 2 * (step + 1) >= steps and step % LOOKS == 0:
            plan = ((scores + down[:, :, None] + right[:, None, :]) / epsilon).detach().exp()
            if float((plan.sum(1) - columns).abs().max()) < tolerance:
                break
    plan = ((scores + down[:, :, None] + right[:, None, :]) / epsilon).exp()
    return _righted(plan.masked_fill(empty, 0.0), rows, columns)


def _logs(masses: RowMasses) -> RowMasses:
    return torch.where(masses > 0, masses, 1.0).log()


def _righted(plan: Cells, rows: RowMasses, columns: ColumnMasses) -> Cells:
    """Rounds the plan to exact marginals."""
    least = torch.finfo(plan.dtype).tiny
    plan = plan * (rows / plan.sum(2).clamp(min=least)).clamp(max=1)[:, :, None]
    plan = plan * (columns / plan.sum(1).clamp(min=least)).clamp(max=1)[:, None, :]
    lacking = (rows - plan.sum(2)).clamp(min=0), (columns - plan.sum(1)).clamp(min=0)
    total = lacking[0].sum(1).clamp(min=torch.finfo(plan.dtype).eps)
    return plan + lacking[0][:, :, None] * lacking[1][:, None, :] / total[:, None, None]


@dataclass(frozen=True)
class Transport:
    """Options of an alignment between the words of a text and of a query, where aligning two has a cost or gain.

    Every word of the text is aligned at most once, and one of the query with at most `several` words. At most `most`
    pairs are aligned, or `exact`ly so many; None stands for as many as there can be. What is not aligned goes to
    dummies at no cost (Swanson et al., 2020, section 4: with `exact` their relaxed one-to-one, one-to-k with
    `several`, exact-k with `most`, and without `exact` their optional alignment).
    """

    most: int | None = None
    exact: bool = False
    several: int = 1
    price: float = 0.0  # of each pair that is aligned, added to its cost
    epsilon: float = 0.05
    steps: int = 100
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if (self.most is not None and self.most < 1) or self.several < 1 or self.steps < 1:
            raise AssayError("Alignments, words for each word and steps are whole numbers from 1.")
        if not 0 <= self.price < float("inf"):
            raise AssayError(f"The price of an aligned pair must be at least 0, got {self.price:g}.")
        if not 0 < self.epsilon < float("inf"):
            raise AssayError(f"The softness of an alignment must be above 0, got {self.epsilon:g}.")

    def __call__(self, cost: Plan, text: Bool[Tensor, "B T"], query: Bool[Tensor, "B S"]) -> Plan:
        """The alignment of each pair, from 0 to 1; 0 on padding."""
        given, cost = cost.dtype, at_least_float32(cost)
        ones, many = text.to(cost), query.to(cost) * self.several
        aligned = torch.minimum(ones.sum(1), many.sum(1))
        aligned = aligned if self.most is None else aligned.clamp(max=self.most)
        free = torch.zeros_like(aligned) if self.exact else aligned  # what the two free dummies may send one another
        rows = torch.cat([ones, torch.stack([many.sum(1) - aligned, free], 1)], 1)
        columns = torch.cat([many, torch.stack([ones.sum(1) - aligned, free], 1)], 1)
        bounds = torch.zeros(rows.shape[1], columns.shape[1], dtype=torch.bool, device=cost.device)
        bounds[-2:, -2:] = True
        bounds[-1, -1] = False
        wide = torch.nn.functional.pad(cost + self.price, (0, 2, 0, 2))
        barred = bounds.expand_as(wide)
        plan = sinkhorn(wide, rows, columns, self.epsilon, self.steps, self.tolerance, barred)
        return (plan[:, :-2, :-2] * (text[:, :, None] & query[:, None, :])).to(given)


LEAST = 1e-6  # added under a root, which has no gradient at 0


class Votes(nn.Module):
    """Scores of two aligned words for each class: V relu(A u + B w + Cu ⊙ Dw)."""

    def __init__(self, size: int, width: int, classes: int) -> None:
        super().__init__()
        self.text, self.query = nn.Linear(size, 2 * width), nn.Linear(size, 2 * width, bias=False)
        self.out = nn.Linear(width, classes, bias=False)

    def forward(self, text: Float[Tensor, "B T M"], query: Float[Tensor, "B S M"]) -> PairVotes:
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

    kind = "transport"
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
    def base(self) -> Aligner:
        return self

    @property
    def described(self) -> dict[str, Any]:
        return {"transport": asdict(self.transport)}

    @classmethod
    def of(cls, stored: Stored) -> Aligner:
        architecture, transport = Architecture(**stored.card["architecture"]), Transport(**stored.card["transport"])
        return cls(architecture, stored.words, stored.classes, transport)

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
        fresh = drawn_aligner(self.architecture, self.transport, len(self.vectors), self.classes, seed)
        return fresh.to(self.vectors).eval()

    def blank(self, name: str) -> Float[Tensor, " D"]:
        return blank_of(self.vectors, name)

    def embed(self, batch: Batch) -> Embedded:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def forward(self, x: Embedded, batch: Batch, edit: Edit | None = None) -> Output:
        """The prediction; there is no attention to edit."""
        votes = self.votes(x, batch)
        plan = self._plan(votes, batch)
        plan = plan if self.training else (plan > 0.5).to(plan)
        return self.counted(Output((plan[..., None] * votes).sum((1, 2)) + self.bias, ()))

    def votes(self, x: Embedded, batch: Batch) -> PairVotes:
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

    def alignment(self, x: Embedded, batch: Batch) -> Plan:
        """The alignment weight of each pair of words."""
        return self._plan(self.votes(x, batch), batch)

    @torch.no_grad()
    def selection(self, x: Embedded, batch: Batch) -> Selection:
        """The words of the text that are aligned with any of the query."""
        plan = self.alignment(x, batch)
        return Selection((plan > 0.5).any(-1), plan.sum(-1).clamp(max=1))

    @torch.no_grad()
    def accounts(self, x: Embedded, batch: Batch) -> list[dict[str, Any]]:
        """The aligned pairs with their scores for each class, above the mean."""
        votes = self.votes(x, batch)
        apart = votes - votes.mean(-1, keepdim=True)
        rows, words, asked = (self._plan(votes, batch) > 0.5).nonzero(as_tuple=True)
        found: list[dict[str, Any]] = [{"aligned": []} for _ in range(len(batch))]
        parts = (rows, words, asked, apart[rows, words, asked])
        for row, *pair in zip(*(each.tolist() for each in parts), strict=True):
            found[row]["aligned"].append(dict(zip(("word", "asked", "votes"), pair, strict=True)))
        return found

    def _plan(self, votes: PairVotes, batch: Batch) -> Plan:
        """The transport plan; a pair's gain is its largest score, so that none can decide while hardly aligned."""
        assert batch.query is not None
        apart = votes - votes.mean(-1, keepdim=True)
        there = batch.mask[:, :, None] & batch.query.mask[:, None, :]
        gain = (apart.square().sum(-1) + LEAST).sqrt() * there
        most = gain.detach().amax((1, 2), keepdim=True).clamp(min=LEAST)
        return self.transport(-gain / most, batch.mask, batch.query.mask)


def drawn_aligner(architecture: Architecture, transport: Transport, words: int, classes: int, seed: int) -> Aligner:
    """An untrained model, equal for equal seeds."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Aligner(architecture, words, classes, transport)
        nn.init.normal_(network.embedding.weight, std=0.5)
    with torch.no_grad():
        network.embedding.weight[0] = 0
    return network
