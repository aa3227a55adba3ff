"""Token coalitions: sampling, and the model's probabilities when only a coalition is left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.explainers.needs import demand, no_blank
from assay.explainers.random import mixed, text_numbers
from assay.models.erasure import kept_probabilities
from assay.types import Attribution, Batch, Model, at_least_float32

TOKENS = 2048  # of texts that are explained together; each of them is read some hundred times
BITS = 53  # of a random number: all that a double holds

Explain = Callable[[Model, Batch, Int[Tensor, " B"]], Attribution]


class Surrogate(ABC):
    """The base class of explainers that query subsets of tokens; `removal` says how the others are removed."""

    removal: str

    def unfit(self, model: Model) -> str | None:
        return None if self.removal == "delete" else no_blank(model)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        return self.attribute(model, batch, target).scores

    def attribute(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
        """The scores, with the diagnostics that the class names."""
        demand(self.unfit(model))
        return by_length(self.explain, model, batch, target)

    @abstractmethod
    def explain(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
        """The same for texts of one length, without padding."""


def by_length(explain: Explain, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
    """Applies `explain` to groups of texts of one length, without padding.

    So nothing below has to know of padding, no text is read more often because a longer one stands beside it, and
    texts of one length share the plan of what is read.
    """
    scores = at_least_float32(model.embed(batch[:1])).new_zeros(batch.ids.shape)
    numbers: dict[str, Tensor] = {}
    errors: Tensor | None = None
    for rows, length in _alike(batch):
        found = explain(model, batch[rows].narrowed(length), target[rows])
        scores[rows, :length] = found.scores.to(scores.dtype)
        for name, values in found.numbers.items():
            numbers.setdefault(name, scores.new_zeros(len(batch)))[rows] = values.to(scores.dtype)
        if found.errors is not None:
            errors = torch.zeros_like(scores) if errors is None else errors
            errors[rows, :length] = found.errors.to(scores.dtype)
    return Attribution(scores, numbers, errors)


def _alike(batch: Batch) -> Iterator[tuple[Int[Tensor, " N"], int]]:
    """Rows of one length, with that length; empty texts are skipped."""
    for length in sorted(set(batch.lengths.tolist())):
        rows = (batch.lengths == length).nonzero()[:, 0]
        for part in rows.split(max(1, TOKENS // max(1, length))) if length else ():
            yield part, length


def worth(
    model: Model, batch: Batch, target: Int[Tensor, " B"], kept: Bool[Tensor, "B N T"], removal: str
) -> Float[Tensor, "B N"]:
    """v(S) = p(target | only the tokens S are left) for N coalitions of each text, in float64."""
    answers = kept_probabilities(model, batch, kept, removal)
    return answers.gather(2, target[:, None, None].expand(-1, kept.shape[1], 1))[..., 0].double()


def keys(batch: Batch, seed: int) -> Int[Tensor, " B"]:
    """A random key per text that depends on its words, their order and the seed alone."""
    return mixed(mixed(text_numbers(batch) + seed) + 1)


def uniform(keys: Int[Tensor, " B"], *shape: int) -> Float[Tensor, "B ..."]:
    """Random numbers in [0, 1) per key; a prefix does not depend on how many are drawn."""
    counters = torch.arange(torch.Size(shape).numel(), device=keys.device)
    bits = mixed(keys[:, None] + mixed(counters + 1)) & ((1 << BITS) - 1)
    return (bits.double() / (1 << BITS)).reshape(len(keys), *shape)


def permutations(keys: Int[Tensor, " B"], count: int, tokens: int) -> Int[Tensor, "B N T"]:
    """Random permutations of the tokens, as ranks."""
    return uniform(keys, count, tokens).argsort(-1)


def every(tokens: int, device: torch.device) -> Bool[Tensor, "N T"]:
    """All subsets of tokens; token t is in set n if bit t of n is set."""
    positions = torch.arange(tokens, device=device)
    return (torch.arange(1 << tokens, device=device)[:, None] >> positions & 1).bool()
