"""Models whose answer is a known function of the set of tokens that are left, and how captum is put to a real one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from assay.types import Batch, Output


class Game:
    """p(class 0) = worth(present), `present` [N, players] being 1 for the players (ids from 1) that are left."""

    def __init__(self, players: int, worth: Callable[[Tensor], Tensor]) -> None:
        self.players, self.worth = players, worth
        self.reads = 0
        self.sizes: list[int] = []

    def embed(self, batch: Batch) -> Tensor:
        return batch.ids.double()[..., None]

    def __call__(self, x: Tensor, batch: Batch, edit: object = None) -> Output:
        players = torch.arange(1, self.players + 1)
        present = ((x == players) & batch.mask[..., None]).any(1).double()
        self.reads += len(present)
        self.sizes += present.sum(-1).long().tolist()
        p = self.worth(present)
        return Output(torch.stack([p, 1 - p], dim=-1).log(), ())


def additive(coefficients: Tensor, start: float = 0.2) -> Game:
    return Game(len(coefficients), lambda present: start + present @ coefficients)


def table(players: int, seed: int = 0) -> Game:
    """A game without any structure: a random number for each set."""
    numbers = torch.rand(2**players, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.8 + 0.1
    powers = 2 ** torch.arange(players)
    return Game(players, lambda present: numbers[(present.long() * powers).sum(-1)])


def texts(rows: list[list[int]] | Tensor) -> tuple[Batch, Tensor]:
    """Texts of equal length, and class 0 as the target of each."""
    ids = torch.as_tensor(rows)
    zeros = torch.zeros(len(ids), dtype=torch.long)
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), zeros), zeros


def shuffled(players: int, count: int) -> Tensor:
    """The players in many orders: different texts of the same game."""
    generator = torch.Generator().manual_seed(0)
    return torch.stack([torch.randperm(players, generator=generator) + 1 for _ in range(count)])


def by_player(scores: Tensor, rows: Tensor) -> Tensor:
    """Scores in the order of the players."""
    return scores.gather(1, rows.argsort(-1))


def peer(model: object, batch: Batch, row: int, target: int) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
    """What captum is given for one text: p(target) of embeddings, the embeddings, and a feature for each token."""
    one = batch[row : row + 1]
    length = int(one.lengths)
    one = Batch(one.ids[:, :length], one.mask[:, :length], one.labels)
    x = model.embed(one).detach()

    def probability(embedded: Tensor) -> Tensor:
        with torch.no_grad():
            many = one[torch.zeros(len(embedded), dtype=torch.long)]
            return model(embedded, many).probabilities[:, target]

    return probability, x, torch.arange(length)[None, :, None].repeat(1, 1, x.shape[-1])
