"""Does a text keep its class when each word keeps as much of its embedding as its score says?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.audits.cases import Case, numpy
from assay.metrics.agreement import levelled
from assay.metrics.erasure import normalised
from assay.models.erasure import at_most, capacity
from assay.types import Batch, Model
from studies.verdict.measures.draws import uniform

HALVINGS = 44  # of the range in which the logarithm of a power lies: 70 / 2^44 is far below what a mean can show
RANGE = 35.0


@dataclass(frozen=True)
class SoftErasure:
    """Soft normalised sufficiency and comprehensiveness, as published and at the same expected share of what is kept.

    Zhao and Aletras (2023), Incorporating Attribution Importance for Improving Faithfulness Metrics. Scores are
    scaled to [0, 1] in each text. Each dimension of a word's embedding is kept with the chance of its score
    (sufficiency), or of 1 less its score (comprehensiveness), else it is 0. With p the probability of the predicted
    class, S = 1 - max(0, p(x) - p(x')), and S(0) that of embeddings that are all 0, the first is
    (S - S(0)) / (1 - S(0)) and the second max(0, p(x) - p(x')) / (1 - S(0)); both are high where the explanation is
    good, means over `draws`, and nan where p(x) - p(0) is less than `metrics.erasure.SMALLEST`.

    The π-corrected versions are means over `shares` π of the same with scores whose mean over the words of the text is
    π (`retained`): every explanation keeps, or takes away, the same share of the text (arXiv 2601.03089). All
    explanations of a text see the same random numbers.
    """

    # differs from Zhao and Aletras (2023): NS below 0, worse than nothing at all, is not cut to 0, and both are left
    # undefined where the text adds little; [0, 1] is reached by the lowest and highest score of a text
    # differs from arXiv 2601.03089: their exact transform could not be found; a power of the scores stands in for it

    draws: int = 4
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5)
    seed: int = 0

    def __call__(self, case: Case) -> dict[str, Float[np.ndarray, " B"]]:
        names, mask = list(case.scores), case.batch.mask.cpu().numpy()
        if not names:
            return {}
        scores = np.stack([numpy(each) for each in case.scores.values()], 1)
        missing = (np.isnan(scores) & mask[:, None]).any(-1)
        chances = self.chances(scores, mask)
        kept = np.concatenate([chances, 1 - chances], 2)  # [B, E, 2 (1 + K), T]
        whole, empty, drops = self._drops(case, kept.reshape(len(mask), -1, mask.shape[1]))
        soft = np.maximum(0, drops).mean(-1).reshape(kept.shape[:3])
        lost, taken = soft[..., : chances.shape[2]], soft[..., chances.shape[2] :]
        bounds = [np.broadcast_to(each[:, None, None], lost.shape) for each in (whole, empty)]
        # with 1 - S(0) = p(x) - p(0), which is positive where this is defined, NS is 1 less a share of it
        found = {"sufficiency": 1 - normalised(lost, *bounds), "comprehensiveness": normalised(taken, *bounds)}
        measures: dict[str, np.ndarray] = {}
        for measure, values in found.items():
            values = np.where(missing[..., None], np.nan, values)
            measures |= {f"soft_{measure}:{name}": values[:, place, 0] for place, name in enumerate(names)}
            if self.shares:
                means = values[..., 1:].mean(-1)
                measures |= {f"pi_soft_{measure}:{name}": means[:, place] for place, name in enumerate(names)}
        return measures

    def chances(
        self, scores: Float[np.ndarray, "B E T"], mask: Bool[np.ndarray, "B T"]
    ) -> Float[np.ndarray, "B E K T"]:
        """The chance of each word to be kept for its score: the scaled score, then those with the mean of each π."""
        own = scaled(scores, mask)
        return np.stack([own, *(retained(own, mask, share) for share in self.shares)], 2)

    def _drops(
        self, case: Case, kept: Float[np.ndarray, "B V T"]
    ) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"], Float[np.ndarray, "B V R"]]:
        """p of the whole text and of none of it, and by how much p falls in each version and draw."""
        model, batch = case.quick, case.batch
        with torch.no_grad():
            x = model.embed(batch)
            chances = torch.from_numpy(kept).to(x.device)
            plain = torch.stack([torch.ones_like(chances[:, 0]), torch.zeros_like(chances[:, 0])], 1)
            drawn = (uniform(batch, self.seed + draw, *x.shape[1:]) for draw in range(self.draws))
            whole, empty = _chosen(case, masked_probabilities(model, batch, x, plain, torch.zeros_like(x[:1]))).T
            found = [_chosen(case, masked_probabilities(model, batch, x, chances, numbers)) for numbers in drawn]
        return whole, empty, whole[:, None, None] - np.stack(found, -1)


def _chosen(case: Case, answers: Float[Tensor, "B V C"]) -> Float[np.ndarray, "B V"]:
    """The probability of the predicted class."""
    return numpy(answers.gather(-1, case.predicted[:, None, None].expand(-1, answers.shape[1], 1))[..., 0])


def masked_probabilities(
    model: Model,
    batch: Batch,
    x: Float[Tensor, "B T D"],
    chances: Float[Tensor, "B V T"],
    drawn: Float[Tensor, "B T D"],
) -> Float[Tensor, "B V C"]:
    """The probabilities for V versions of each text's embeddings; a dimension stays where its number is below a chance.

    Embeddings of words in subwords stand beside one another in a word's row, so each subword has dimensions of its own.
    """
    answers: list[Tensor] = []
    for part in _parts(chances, max(1, capacity(model, x.device) // max(1, at_most(batch)))):
        masked = torch.where(drawn[:, None] < part[..., None], x[:, None], 0)
        rows = torch.arange(len(batch), device=x.device).repeat_interleave(part.shape[1])
        read = model(masked.flatten(0, 1), batch[rows]).probabilities
        answers.append(read.reshape(*part.shape[:2], -1))
    return torch.cat(answers, 1)


def _parts(chances: Float[Tensor, "B V T"], size: int) -> Iterator[Float[Tensor, "B N T"]]:
    """The versions, `size` at a time."""
    for start in range(0, chances.shape[1], size):
        yield chances[:, start : start + size]


def scaled(scores: Float[np.ndarray, "B E T"], mask: Bool[np.ndarray, "B T"]) -> Float[np.ndarray, "B E T"]:
    """The scores from 0 for a text's lowest to 1 for its highest; 1 where all are equal, and 0 on padding or nan."""
    rows, explainers, tokens = scores.shape
    real = np.broadcast_to(mask[:, None], scores.shape)
    flat = levelled(np.where(np.isnan(scores), 0, scores).reshape(-1, tokens), real.reshape(-1, tokens))
    level = flat.reshape(rows, explainers, tokens)
    lowest = level.min(-1, keepdims=True, initial=np.inf, where=real)
    highest = level.max(-1, keepdims=True, initial=-np.inf, where=real)
    differ = highest > lowest
    with np.errstate(invalid="ignore"):
        found = np.where(differ, (level - lowest) / np.where(differ, highest - lowest, 1), 1.0)
    return np.where(real, found, 0.0)


def retained(
    chances: Float[np.ndarray, "B E T"], mask: Bool[np.ndarray, "B T"], share: float
) -> Float[np.ndarray, "B E T"]:
    """Chances in the same order whose mean over a text's words is `share`.

    They are a power of those given, found by halving, where one has that mean. Else the highest words alone, which no
    power lowers from 1, share what is less, or the words of chance 0, which no power raises, share what is more.
    """
    count = mask.sum(-1)[:, None]
    top, some = (chances == 1) & mask[:, None], (chances > 0) & mask[:, None]
    wanted, ones, above = share * count, top.sum(-1), some.sum(-1)
    few = top * _ratio(wanted, ones)
    many = np.where(some, 1.0, mask[:, None] * _ratio(wanted - above, count - above))
    power = _power(chances, some, wanted)
    found: np.ndarray = np.where((wanted <= ones)[..., None], few, np.where((wanted >= above)[..., None], many, power))
    return found


def _ratio(part: np.ndarray, whole: np.ndarray) -> Float[np.ndarray, "B E 1"]:
    """A share with an axis for words; 0 of nothing."""
    return np.asarray(part / np.maximum(whole, 1))[..., None]


def _power(
    chances: Float[np.ndarray, "B E T"], some: Bool[np.ndarray, "B E T"], wanted: Float[np.ndarray, "B 1"]
) -> Float[np.ndarray, "B E T"]:
    """The power of the chances that sums to what is wanted, where one does."""
    logs = np.log(np.where(some, chances, 1))
    low, high = np.full(some.shape[:2], -RANGE), np.full(some.shape[:2], RANGE)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        over = (np.exp(np.exp(middle)[..., None] * logs) * some).sum(-1) > wanted  # a higher power is needed
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.asarray(np.exp(np.exp((low + high) / 2)[..., None] * logs) * some)
