"""Adversarial attention by gradient ascent, for any number of classes: a lower bound."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.intervene.adversary.distance import jsd
from assay.intervene.adversary.problem import Adversaries, Problem


@dataclass(frozen=True)
class Search:
    """The relaxed objective of Jain and Wallace (2019), section 4.2.2, for a whole batch at once.

    Every example starts from the same random numbers, so that its result does not depend on the batch it is in.
    """

    steps: int = 500
    learning_rate: float = 0.01
    penalty: float = 500.0
    seed: int = 0

    def __call__(
        self,
        values: Float[Tensor, "B T C"],
        weights: Float[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        epsilon: float = 0.01,
        k: int = 5,
    ) -> Adversaries:
        """The best k attentions of the ascent whose output moves by at most epsilon."""
        with torch.inference_mode(False), torch.enable_grad():
            problem = Problem.of(values, weights, mask, epsilon)
            real, scores = problem.mask[:, None], self._start(problem, k).requires_grad_()
            optimiser = torch.optim.Adam([scores], self.learning_rate, amsgrad=True, maximize=True)
            best = problem.weights[:, None].expand_as(scores)
            record = torch.zeros_like(scores[..., 0])
            for _ in range(self.steps):
                attention = scores.where(real, -1e9).softmax(-1) * real
                apart = jsd(attention, problem.weights[:, None])
                excess = problem.tvd(attention) - epsilon
                # differs from Jain and Wallace (2019): the best iterate within epsilon is kept, not the last one
                better = ((excess <= 0) & (apart > record)).detach()
                best, record = attention.detach().where(better[..., None], best), apart.detach().where(better, record)
                # differs from Jain and Wallace (2019): the penalty is subtracted; their plus sign is a misprint
                gain = apart.sum() + _diversity(attention) - self.penalty / k * excess.relu().sum()
                (scores.grad,) = torch.autograd.grad(gain, scores)
                optimiser.step()
        return problem.answer(best, "lower bound", problem.ceiling)

    def _start(self, problem: Problem, k: int) -> Float[Tensor, "B K T"]:
        """Initial logits log(1/L) + 3 N(0, 1), drawn per token, so that padding does not change them."""
        generator = torch.Generator().manual_seed(self.seed)
        tokens = problem.mask.shape[1]
        even = torch.rand(tokens, k, dtype=torch.float64, generator=generator).clamp(min=1e-12)
        noise: Tensor = torch.special.ndtri(even).T.to(problem.values.device)
        return 3 * noise - problem.mask.sum(-1).clamp(min=1).log()[:, None, None]


def _diversity(attention: Float[Tensor, "B K T"]) -> Float[Tensor, ""]:
    """The second term of equation 2, summed over the batch."""
    k = attention.shape[1]
    first, second = torch.triu_indices(k, k, 1, device=attention.device)
    return jsd(attention[:, first], attention[:, second]).sum() / max(k * (k - 1), 1)


search = Search()
"""The search with the settings of the paper."""
