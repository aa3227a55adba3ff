"""Anchors: rules of few tokens that hold the decision with high precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.baselines import mixed
from assay.explainers.needs import Target
from assay.explainers.shapley import Surrogate, keys, uniform
from assay.models.erasure import kept_probabilities
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model

Rates = Float[Tensor, "*N"]
PerText = Float[Tensor, " B"]

# KL confidence bounds of a Bernoulli rate (Kaufmann and Kalyanakrishnan, 2013).


STEPS = 40  # of a bisection: to some 1e-12


def lower(rate: Rates, tries: Rates, level: float) -> Rates:
    """The lower KL bound: the least q with tries · KL(rate, q) ≤ level."""
    return _furthest(rate, torch.zeros_like(rate), tries, level)


def upper(rate: Rates, tries: Rates, level: float) -> Rates:
    """The upper KL bound."""
    return _furthest(rate, torch.ones_like(rate), tries, level)


def exploration(arms: int, round_number: int, confidence: float) -> float:
    """The level at which the bounds hold for all arms in all rounds of KL-LUCB (α = 1.1)."""
    return math.log(405.5 * arms * round_number**1.1 / (1 - confidence))


def _furthest(rate: Rates, end: Rates, tries: Rates, level: float) -> Rates:
    # KL is cross-entropy less entropy, and only the former changes on the way.
    most = level / tries - torch.xlogy(rate, rate) - torch.xlogy(1 - rate, 1 - rate)
    inside, outside = rate, end
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        near = -torch.xlogy(rate, middle) - torch.xlogy(1 - rate, 1 - middle) <= most
        inside, outside = torch.where(near, middle, inside), torch.where(near, outside, middle)
    return inside


# Anchors: the smallest token set that keeps the decision, whatever the other tokens are.


ROUNDS = 3  # in which the two rules that are hardest to tell apart are tried again
LOOKS = (2, 4)  # times `samples`: when a rule on trial is judged
LEAST = 0.01  # the score of a token of the rule that added less than this
SHADE = 0.001  # what the probability counts beside the decision: among rules that seem equal, it chooses


@dataclass(frozen=True)
class Rules:
    """A rule per text, "while the `kept` tokens are present, the class stays", with its precision and coverage."""

    kept: Bool[Tensor, "B T"]
    precision: PerText
    lower_bound: PerText
    coverage: PerText


@dataclass(frozen=True)
class Anchors(Surrogate):
    """What the token adds to the precision of the smallest rule that holds the decision (Ribeiro et al., 2018); else 0.

    A rule is a set of tokens. Its precision is the probability that the model gives the target class to the text in
    which they are kept and each other token is removed with probability ½; its coverage, the share of all such texts
    that the rule speaks of, is ½ to the power of its size. Rules grow by a token at a time, `beam` of them side by
    side, chosen by KL-LUCB; when the best one looks precise enough, it is put on trial with samples of its own, and is
    accepted if its precision is at least `precision` with the given `confidence`, all trials of a text together. If no
    rule of up to `longest` tokens is, the last one is returned, and its lower bound says so.
    `attribute` tells the rule's precision as its trial showed it, the lower bound, its size and its coverage.
    """

    sparse: ClassVar[bool] = True
    story: ClassVar[Story] = Story(
        measures=(
            Measure("precision", "precision of the rule"),
            Measure("lower_bound", "lower bound of that precision"),
            Measure("size", "words in the rule"),
            Measure("coverage", "coverage of the rule"),
        )
    )

    precision: float = 0.95
    confidence: float = 0.9
    beam: int = 2
    longest: int = 6
    samples: int = 64
    removal: str = "mask"
    seed: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.precision < 1 and 0 < self.confidence < 1):
            raise AssayError("precision and confidence of anchors must be between 0 and 1, such as 0.95 and 0.9.")
        if min(self.beam, self.longest, self.samples) < 1:
            raise AssayError("beam, longest and samples of anchors must be at least 1.")

    def rules(self, model: Model, batch: Batch, target: Target) -> Rules:
        """The anchor of each text."""
        found = self.attribute(model, batch, target)
        numbers = found.numbers
        return Rules(found.scores > 0, numbers["precision"], numbers["lower_bound"], numbers["coverage"])

    def of_length(self, model: Model, batch: Batch, target: Target) -> Attribution:
        # differs from Ribeiro et al. (2018): a rule has at least one token, all tokens are removed alike (they draw
        # other words by a language model), and the accepted rule was tried with samples that did not choose it.
        gains = torch.zeros(batch.ids.shape, dtype=torch.float64, device=batch.ids.device)
        numbers = gains.new_zeros(len(batch), 2)  # precision and lower bound
        rows, beam = torch.arange(len(batch), device=gains.device), gains[:, None]
        last = min(self.longest, batch.ids.shape[1])
        for size in range(1, last + 1):
            trial = Trial(self, model, batch[rows], target[rows], size)
            beam, seeming = trial.grown(beam)
            shown = trial.judged(beam[:, 0] > 0, (seeming >= self.precision) | (size == last))
            done = (shown[:, 1] >= self.precision) | (size == last)
            gains[rows[done]], numbers[rows[done]] = beam[done, 0], shown[done]
            rows, beam = rows[~done], beam[~done]
            if not len(rows):
                break
        sizes = (gains > 0).sum(-1).double()
        found = {"precision": numbers[:, 0], "lower_bound": numbers[:, 1], "size": sizes, "coverage": 0.5**sizes}
        return Attribution(gains, found)


@dataclass(frozen=True)
class Trial:
    """The bandit over candidate rules of one size for texts of one length."""

    options: Anchors
    model: Model
    batch: Batch
    target: Target
    size: int

    def grown(self, beam: Float[Tensor, "B W T"]) -> tuple[Float[Tensor, "B V T"], PerText]:
        """The best rules with one more token, the best first, and their estimated precision."""
        rules, tokens = beam > 0, beam.shape[-1]
        every = torch.arange(len(beam), device=beam.device)
        kept, answers = self._sampled(every, rules, self.options.samples, 0)
        held = self._held(answers)
        # A sample of a rule that happens to keep another token is a sample of the rule with that token, too.
        hits, tries = (counted.sum(2).flatten(1) for counted in (kept * held[..., None], kept.double()))
        added = torch.eye(tokens, dtype=torch.bool, device=beam.device)
        longer = (rules[:, :, None] | added).flatten(1, 2)
        known = rules.flatten(1) | _repeated(longer)
        for number in range(1, ROUNDS + 1):
            arms = self.hardest(hits, tries, known, number)
            _, again = self._sampled(every, longer[every[:, None], arms], max(1, self.options.samples // 4), number)
            hits = hits.scatter_add(1, arms, self._held(again).sum(-1))
            tries = tries.scatter_add(1, arms, torch.full_like(again[:, :, 0, 0], again.shape[2]).double())
        rates = (hits / tries.clamp(min=1)).masked_fill(known, -1)
        best = rates.argsort(dim=-1, descending=True, stable=True)[:, : self.options.beam]
        rates, parents, token = rates.gather(1, best), best // tokens, added[best % tokens]
        gain = (rates - held.mean(-1).gather(1, parents)).clamp(min=LEAST)[..., None] * token
        grown = beam[every[:, None], parents]
        return torch.where(grown > 0, grown, gain), rates[:, 0]

    def hardest(
        self, hits: Float[Tensor, "B A"], tries: Float[Tensor, "B A"], known: Bool[Tensor, "B A"], number: int
    ) -> Int[Tensor, "B 2"]:
        """KL-LUCB's choice of arms: the weakest of the leading rules, the strongest of the others."""
        rates = (hits / tries.clamp(min=1)).clamp(max=1)  # rounding may take it further
        level = exploration(hits.shape[1], number, self.options.confidence)
        order = rates.masked_fill(known, -1).argsort(dim=-1, descending=True, stable=True)
        leading = torch.zeros_like(known).scatter(1, order[:, : self.options.beam], True)
        weakest = lower(rates, tries, level).masked_fill(~leading | known, torch.inf).argmin(-1)
        strongest = upper(rates, tries, level).masked_fill(leading | known, -torch.inf).argmax(-1)
        return torch.stack([weakest, strongest], dim=-1)

    def judged(self, rules: Bool[Tensor, "B T"], chosen: Bool[Tensor, " B"]) -> Float[Tensor, "B 2"]:
        """Precision and lower bound of the chosen texts' rules, from fresh samples; 0 for other texts."""
        # The chance of an error is shared out: δ / s(s + 1) to the size s, in equal parts to the looks.
        level = math.log(len(LOOKS) * self.size * (self.size + 1) / (1 - self.options.confidence))
        shown = torch.zeros(len(rules), 2, dtype=torch.float64, device=rules.device)
        rows, read = chosen.nonzero()[:, 0], 0
        hits = shown.new_zeros(len(rows))
        for number, times in enumerate(LOOKS, ROUNDS + 1):
            if not len(rows):
                break
            _, answers = self._sampled(rows, rules[rows, None], times * self.options.samples - read, number)
            read = times * self.options.samples
            hits = hits + (answers.argmax(-1) == self.target[rows, None, None]).sum((1, 2))
            rates = hits / read
            low = lower(rates, torch.full_like(rates, read), level)
            shown[rows] = torch.stack([rates, low], dim=-1)
            open_still = (low < self.options.precision) & (rates >= self.options.precision)
            rows, hits = rows[open_still], hits[open_still]
        return shown

    def _held(self, answers: Float[Tensor, "B R S C"]) -> Float[Tensor, "B R S"]:
        """1 where the target wins, else 0, plus a small share of its probability; KL bounds hold in [0, 1]."""
        target = self.target[:, None, None]
        chance = answers.gather(-1, target[..., None].expand(*answers.shape[:3], 1))[..., 0].double()
        return (1 - SHADE) * (answers.argmax(-1) == target) + SHADE * chance

    def _sampled(
        self, rows: Int[Tensor, " N"], rules: Bool[Tensor, "N R T"], count: int, step: int
    ) -> tuple[Bool[Tensor, "N R S T"], Float[Tensor, "N R S C"]]:
        """Samples versions of some texts under each rule, and the model's outputs."""
        batch = self.batch[rows]
        texts = mixed(keys(batch, self.options.seed) + 100 * self.size + step)
        kept = rules[:, :, None] | (uniform(texts, rules.shape[1], count, rules.shape[2]) < 0.5)
        answers = kept_probabilities(self.model, batch, kept.flatten(1, 2), self.options.removal)
        return kept, answers.reshape(*kept.shape[:3], -1)


def _repeated(rules: Bool[Tensor, "B A T"]) -> Bool[Tensor, "B A"]:
    """Whether a rule duplicates an earlier one."""
    codes = mixed(torch.arange(1, rules.shape[-1] + 1, device=rules.device))
    sums = (rules * codes).sum(-1)
    return (sums[:, :, None] == sums[:, None]).tril(-1).any(-1)
