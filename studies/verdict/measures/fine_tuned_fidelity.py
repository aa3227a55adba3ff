"""Does a model that knows texts with gaps lose the class where some of an explanation's top words are the gap?"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import Case, numpy
from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.metrics.erasure import ranks, sizes
from assay.models.erasure import gathered, left, version_probabilities
from assay.models.fit import fit
from assay.models.network import Network
from assay.models.objectives import CHANCE, Labels, Learning
from assay.models.recipes import Recipe, label_objective, learnable
from assay.models.store import Trained
from assay.models.textmodel import graded
from assay.types import Batch, Model
from studies.verdict.measures.draws import uniform

PLUS, MINUS = 0, 1


@dataclass(frozen=True)
class FineTunedFidelity:
    """Fine-tuned fidelity: the drops of p without a random part of the top words, and of the others.

    Zheng et al. (2025), F-Fidelity: A Robust Framework for Faithfulness Evaluation of Explainable AI. The top words
    are the highest ceil(share × words). Of them a random part, `alpha`, is deleted, but never more than beta × words:
    what `tuned` has learnt to read. FFid+ is the mean drop of p without a part of the top words, FFid- that without a
    part of the others, FFid their difference; all are means over `draws` and `shares`. p is the probability that
    `tuned` gives to the class that the audited model predicts. All explanations of a text see the same random numbers.
    """

    # differs from Zheng et al. (2025): p stands for the accuracy; FFid is one number, their two are kept beside it
    # differs from Zheng et al. (2025): a part is rounded up and at least one word, else short texts would have no gap

    tuned: Model
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5)
    alpha: tuple[float, float] = (0.5, 0.5)  # of the top words, and of the others
    beta: float = 0.2
    draws: int = 8
    seed: int = 0

    def __call__(self, case: Case) -> dict[str, Float[np.ndarray, " B"]]:
        mask = case.batch.mask.cpu().numpy()
        names = list(case.scores)
        if not names:
            return {}
        scores = np.stack([numpy(each) for each in case.scores.values()], 1)
        missing = (np.isnan(scores) & mask[:, None]).any(-1)
        removed = self.removed(case.batch, np.stack([ranks(scores[:, place], mask) for place in range(len(names))], 1))
        drops = self._drops(case, removed).mean((-2, -1))
        found = {"ffid_plus": drops[..., PLUS], "ffid_minus": drops[..., MINUS]}
        found["ffid"] = found["ffid_plus"] - found["ffid_minus"]
        held = {measure: np.where(missing, np.nan, values) for measure, values in found.items()}
        return {f"{key}:{name}": values[:, place] for key, values in held.items() for place, name in enumerate(names)}

    def removed(self, batch: Batch, order: Int[np.ndarray, "B E T"]) -> Bool[np.ndarray, "B E 2 K R T"]:
        """The words that are deleted for each explanation: of its top words and of the others, at each share and draw.

        Of the words on one side those go whose random numbers are the lowest.
        """
        mask, lengths = batch.mask.cpu().numpy(), batch.lengths.cpu().numpy()
        top = order[:, :, None] < sizes(lengths, self.shares)[:, None, :, None]
        sides = np.stack([top, ~top], 2) & mask[:, None, None, None]
        exact = sides.sum(-1) * np.array(self.alpha)[:, None]
        part = np.ceil(exact - 1e-9)  # .1 × 30 is a little more than 3 to a computer
        gap = np.minimum(part, most(lengths, self.beta)[:, None, None, None])
        drawn = numpy(uniform(batch, self.seed, self.draws, mask.shape[1]))[:, None, None, None]
        turn = drawn.argsort(-1)
        lined = np.take_along_axis(sides[..., None, :], turn, -1)
        gone = lined & (lined.cumsum(-1, dtype=np.int32) <= gap[..., None, None])
        return np.take_along_axis(gone, turn.argsort(-1), -1)

    def _drops(self, case: Case, removed: Bool[np.ndarray, "B *N T"]) -> Float[np.ndarray, " B *N"]:
        """By how much p falls without these words."""
        rows, *counts, tokens = removed.shape
        versions = np.zeros((rows, 1 + int(np.prod(counts)), tokens), dtype=bool)
        versions[:, 1:] = removed.reshape(rows, -1, tokens)
        answers = _read(self.tuned, case, ~versions & case.batch.mask.cpu().numpy()[:, None])
        return np.asarray((answers[:, :1] - answers[:, 1:]).reshape(rows, *counts))


def most(lengths: Int[np.ndarray, " B"], beta: float) -> Int[np.ndarray, " B"]:
    """How many words of a text may go: the share beta, but at least one, and never all of them."""
    share = np.floor(lengths * beta + 1e-9).astype(np.int64)
    return np.asarray(np.minimum(np.maximum(share, 1), np.maximum(lengths - 1, 0)))


def _read(model: Model, case: Case, kept: Bool[np.ndarray, "B N T"]) -> Float[np.ndarray, "B N"]:
    """The probability of the class that the audited model predicts; what several versions leave alike is read once."""
    example = np.arange(len(kept)).repeat(kept.shape[1])
    versions = kept.reshape(len(example), -1)
    bits = np.concatenate([example[:, None].view(np.uint8), np.packbits(versions, axis=-1)], 1)
    keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}")[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    whose, words = (torch.from_numpy(values[first]).to(case.batch.ids.device) for values in (example, versions))
    answers = version_probabilities(model, case.batch, whose, words)
    chosen = answers.gather(-1, case.predicted[whose][:, None])[:, 0]
    return numpy(chosen)[place].reshape(kept.shape[:2])


@dataclass(frozen=True)
class Gapped:
    """The right class of texts that lack a random share of their words, drawn anew each time they are read."""

    begun: ClassVar[float] = CHANCE
    beta: float
    labels: Labels

    @property
    def identity(self) -> dict[str, Any]:
        return {"gapped": self.beta} | asdict(self.labels)

    def losses(self, network: Network, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        return self.labels.losses(network, gapped(batch, self.beta), learning)

    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, rows)


def gapped(batch: Batch, beta: float) -> Batch:
    """The texts without some random words: any number of them up to the share beta is as likely as any other."""
    device = batch.ids.device
    limit = torch.from_numpy(most(batch.lengths.cpu().numpy(), beta)).to(device)
    gap = (torch.rand(len(batch), device=device) * (limit + 1)).long().minimum(limit)
    numbers = torch.rand(batch.mask.shape, device=device).masked_fill(~batch.mask, torch.inf)
    kept = batch.mask & (numbers.argsort(-1).argsort(-1) >= gap[:, None])
    places = left(kept)[:, : int(kept.sum(-1).max())]
    return gathered(batch, torch.arange(len(batch), device=device), places, kept)


def fine_tuned(model: Trained, corpus: Corpus, beta: float = 0.2, epochs: int = 1, seed: int = 0) -> Network:
    """A copy of a network of ours, trained for some more epochs on its texts with random words deleted.

    The gaps know nothing of any explanation. Everything else is as the model's recipe says, such as the learning rate;
    of several epochs the best on whole texts of the dev split is kept. The model that is given does not change.
    """
    # differs from Zheng et al. (2025): words are deleted, as they are in the measure, not replaced by a mask
    recipe = Recipe.of(model.history["recipe"])
    train, dev, _ = learnable(corpus, model.tokeniser, recipe.text.longest)
    network = copy.deepcopy(model.network)
    network.embedding.weight.requires_grad_(not recipe.architecture.frozen)
    options = replace(recipe.training, epochs=epochs, seed=seed)
    fit(network, train, dev, options, objective=Gapped(beta, label_objective(model.tokeniser, options)))
    return network
