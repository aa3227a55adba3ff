"""Six explainers of one sentence and their evaluation: ours, and a plain loop with what is known of ferret.

ferret 0.4.2 itself cannot be imported beside a current numpy. The loop is written from the definitions: gradients,
gradients times input, integrated gradients of 50 steps with and without the input, LIME with as many samples as tokens
squared, partition SHAP with 500 reads; eight versions of a text are read at once, removed words are masked, and
leave-one-out is computed anew for each explainer. What it leaves out, such as turning ids into strings and back, would
only slow it down.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

from assay.explainers.gradients import gradient_norm, input_x_gradient, probability_gradient
from assay.explainers.occlusion import Occlusion
from assay.explainers.shapley import Owen
from assay.explainers.surrogates import Lime, ridge
from assay.metrics import erasure
from assay.metrics.agreement import kendall
from assay.models.erasure import baseline, kept_probabilities
from assay.models.hf_models import Pretrained
from assay.types import Batch

THRESHOLDS = tuple(step / 10 for step in range(1, 11))
STEPS, AT_ONCE, EVALUATIONS = 50, 8, 500  # of the loop
NODES = 31  # of ours; one rule for all, without a look at the gap

Scores = dict[str, Tensor]
Numbers = dict[str, tuple[float, float, float]]
"""Comprehensiveness, sufficiency and Kendall's τ with leave-one-out, for each explainer."""


def ours(model: Pretrained, batch: Batch, samples: int, reads: int) -> Scores:
    """Our six; the gradients along one path serve two of them."""
    x, mean = model.embed(batch).detach().float(), mean_gradient(model, batch)
    return {
        "gradient": gradient_norm(model, batch, batch.labels),
        "gradient × input": input_x_gradient(model, batch, batch.labels),
        "mean gradient": mean.norm(dim=-1),
        "integrated gradients": (mean * x).sum(-1),
        "LIME": Lime(samples)(model, batch, batch.labels),
        "partition SHAP": Owen(reads)(model, batch, batch.labels),
    }


def mean_gradient(model: Pretrained, batch: Batch) -> Tensor:
    """The mean gradient on the way from zero to the text, by Gauss–Legendre nodes that are read together."""
    places, weights = (torch.from_numpy(part / 2).float() for part in np.polynomial.legendre.leggauss(NODES))
    x = model.embed(batch).detach()
    copies = torch.zeros(NODES, dtype=torch.long)
    _, gradient = probability_gradient(
        model, (places[:, None, None] + 0.5).to(x) * x, batch[copies], batch.labels[copies]
    )
    return (weights[:, None, None] * gradient.float()).sum(0, keepdim=True)


@torch.no_grad()
def evaluated(model: Pretrained, batch: Batch, scores: Mapping[str, Tensor]) -> Numbers:
    """Our evaluation: the versions of all explainers are read together, those that coincide and leave-one-out once."""
    ranks = np.concatenate([erasure.ranks(each.numpy(), batch.mask.numpy()) for each in scores.values()])
    sizes = erasure.sizes(batch.lengths.numpy(), THRESHOLDS)[0]
    top = torch.from_numpy(ranks[:, None] < sizes[:, None])  # [E, K, T]
    versions, place = torch.cat([~top, top, torch.ones_like(top[:1])]).flatten(0, 1).unique(dim=0, return_inverse=True)
    answers = kept_probabilities(model, batch, versions[None])[0, place, batch.labels].double()
    without, only, whole = (part.numpy() for part in answers.split([top[..., 0].numel()] * 2 + [len(sizes)]))
    single = Occlusion()(model, batch, batch.labels).double().numpy()
    found = {}
    for number, (name, each) in enumerate(scores.items()):
        rows = slice(number * len(sizes), (number + 1) * len(sizes))
        drops = [float(erasure.aopc(whole[0] - part[rows])) for part in (without, only)]
        tau = kendall(each.double().numpy(), single, batch.mask.numpy()).tau
        found[name] = (drops[0], drops[1], float(tau[0]))
    return found


class Loop:
    """The plain loop: the library's model, one list of subwords at a time."""

    def __init__(self, model: Pretrained, batch: Batch) -> None:
        self.model, self.batch = model, batch
        self.x = model.embed(batch).detach()
        self.mask = baseline(model, batch, "mask").detach()
        self.target, self.tokens = int(batch.labels[0]), batch.ids.shape[1]

    def answers(self, x: Tensor) -> Tensor:
        """p of the class for each row of embeddings."""
        rows = self.batch[torch.zeros(len(x), dtype=torch.long)]
        return self.model(x, rows).probabilities[:, self.target]

    @torch.no_grad()
    def masked(self, kept: Tensor) -> Tensor:
        """The same for versions with masked words, eight at a time."""
        return torch.cat(
            [self.answers(torch.where(part[..., None], self.x, self.mask)) for part in kept.split(AT_ONCE)]
        )

    @torch.no_grad()
    def deleted(self, kept: Tensor) -> Tensor:
        """The same for versions without the words, one by one, since each is of another length."""
        found = []
        for row in kept:
            chosen = row if row.any() else _marked(torch.tensor([0]), self.tokens)  # an empty text is one of padding
            mask = (self.batch.mask & row)[:, chosen]
            text = Batch(self.batch.ids[:, chosen], mask, self.batch.labels, subwords=_picked(self.batch, chosen))
            found.append(self.model(self.x[:, chosen], text).probabilities[0, self.target])
        return torch.stack(found)

    def gradient(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self.answers(x).sum(), x)[0]

    def path(self) -> Tensor:
        """The mean gradient of 50 points, eight at a time."""
        points = torch.cat([self.x * (step + 0.5) / STEPS for step in range(STEPS)])
        return torch.cat([self.gradient(part) for part in points.split(AT_ONCE)]).mean(0, keepdim=True)

    def lime(self) -> Tensor:
        count = (self.tokens + 2) ** 2  # the special tokens count
        removed = torch.randint(1, self.tokens + 1, (count, 1))
        kept = torch.rand(count, self.tokens).argsort(-1) >= removed
        kept[0] = True
        share = kept.double().mean(-1)
        weights = (-((100 * (1 - share.sqrt()) / 25) ** 2) / 2).exp()
        return ridge(kept.double()[None], self.masked(kept).double()[None], weights[None], 1.0)[0]

    def shap(self) -> Tensor:
        from benchmarks.beside.with_shap import shap_partition  # ours does without it

        def probability(rows: Tensor) -> Tensor:
            return self.masked(rows[..., 0] != 0)

        ones = torch.ones(1, self.tokens, 1)
        return shap_partition(probability, ones, AT_ONCE, EVALUATIONS)[None]

    def explained(self) -> Scores:
        return {
            "gradient": self.gradient(self.x).norm(dim=-1),
            "gradient × input": (self.gradient(self.x) * self.x).sum(-1),
            "mean gradient": self.path().norm(dim=-1),
            "integrated gradients": (self.path() * self.x).sum(-1),
            "LIME": self.lime(),
            "partition SHAP": self.shap(),
        }

    def evaluated(self, scores: Scores) -> Numbers:
        """Each explainer by itself: ten versions without the highest words, ten with only these, one for each word."""
        found = {}
        for name, each in scores.items():
            order = each[0].argsort(descending=True, stable=True)
            tops = torch.stack(
                [_marked(order[: -(-self.tokens * (step + 1) // 10)], self.tokens) for step in range(10)]
            )
            whole = self.deleted(torch.ones(1, self.tokens, dtype=torch.bool))
            single = whole - self.deleted(~torch.eye(self.tokens, dtype=torch.bool))
            drops = [float((whole - self.deleted(kept)).double().mean()) for kept in (~tops, tops)]
            found[name] = (drops[0], drops[1], float(kendalltau(each[0].detach(), single).statistic))
        return found


def _picked(batch: Batch, row: Tensor) -> Tensor | None:
    return None if batch.subwords is None else batch.subwords[:, row]


def _marked(places: Tensor, tokens: int) -> Tensor:
    return torch.zeros(tokens, dtype=torch.bool).scatter(0, places, True)
