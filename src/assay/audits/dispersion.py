"""Entropy of importance, and the share of its own word in what moves a hidden state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.audits.cases import (
    Answer,
    BaseAudit,
    Case,
    ItemValues,
    Numbers,
    TokenValues,
    by_subject,
    mean_defined,
    numpy,
    of_subject,
    without_pooling,
)
from assay.explainers.attention import StateGradient
from assay.explainers.gradients import gradient_norm
from assay.explainers.occlusion import leave_one_out
from assay.intervene.pooled_attention import Pooling, single_logits
from assay.lookup import SENTENCES, items, shared, spread, subjects
from assay.metrics.agreement import kendall
from assay.metrics.information import normalised_entropy, tvd
from assay.models.dependence import shares, state_gradient_norms
from assay.models.network import Network
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing, Measure, Story
from assay.types import Explainer
from assay.writing import count

WORDS: dict[str, tuple[str, Explainer]] = {
    "gradient": ("gradient_norm", gradient_norm),
    "leave_one_out": ("leave_one_out", leave_one_out),
}
STATES = "states"


MOSTLY = 0.5
"""A state of which more than half comes from its own word stands mostly for that word."""

STORY = Story(
    title="What does a state stand for?",
    question="Does a state stand for its own word, and is importance with few words or spread over all of them?",
    measures=(
        Measure("entropy", "normalised entropy", main=True),
        Measure("own", "share of what moves a state that comes from its own word"),
        Measure("first", "states that their own word moves most (share)"),
        Measure("tau", "Kendall τ"),
        Measure("significant", "texts whose τ differs from 0 at p ≤ 0.05 (share)"),
    ),
    drawings=(
        Drawing(
            "models",
            "dispersion",
            (
                "How evenly importance is spread over the words of a text, with 95 % intervals: 1 all alike, "
                "0 on a single one."
            ),
            {
                "measure": "entropy",
                "title": "normalised entropy (1: all alike)",
                "called": {
                    "attention": "attention",
                    "gradient": "words, by gradient",
                    "leave_one_out": "words, by deletion",
                    "state_gradient": "states, by gradient",
                    "state_leave_one_out": "states, by deletion",
                    "states": "words for one state",
                },
            },
        ),
    ),
    reading=(
        "Attention weighs states, not words. Where a state is moved by the whole text, a weight on it says "
        "little about the word at its place. Entropies are normalised by the length of the text, so that "
        "texts can be compared; gradients and deletions are two answers to the same question, and may differ. "
        "The decoder is linear, so that the gradient of a state grows with its attention: agreement of these "
        "two is high by construction. This is one model: another seed gives other states."
    ),
    ungraded="It describes the model’s states; no amount is right or wrong.",
    about="model",
    subjects="of",
    terms=("normalised entropy",),
)


@dataclass(frozen=True)
class Dispersion(BaseAudit):
    """The normalised entropy of importances: 1 where all tokens count alike, 0 where a single one counts.

    Of words for the output by `gradient` (equation 4) and `leave_one_out` (6), of words for a state (5, `states`: the
    mean over states), and of states for the output by `attention`, `state_gradient` and `state_leave_one_out`, which
    erases the attention to a state. `own` is the share of a state's own word in what it depends on, `first` how many
    of the states depend most on their own word, `tau` Kendall's τ-b of attention with importance. Where sentences are
    attended, these are the states, and their own words are all that they have; attention to words is that of their
    sentences, shared among them. Texts with a single word are left out.
    """

    reliability: ClassVar[str] = "exact"
    story: ClassVar[Story] = STORY
    paper: str = "Meister et al. (2021), equations 4 to 6, tables 1 and 2, figures 1 and 2"

    def unfit(self, case: Case) -> str | None:
        if isinstance(case.model, Network):
            return without_pooling(case)
        return "the model's states cannot be followed back to its words"

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(_answer(record))

    def __call__(self, case: Case) -> Answer:
        words, states = of_words(case), of_states(case)
        mask, real = case.mask, case.items.cpu().numpy()
        measures = by_subject("entropy", {name: normalised_entropy(values, mask) for name, values in words.items()})
        measures |= by_subject("entropy", {name: normalised_entropy(values, real) for name, values in states.items()})
        measures |= of_subject(STATES, of_words_for_states(case))
        measures |= _agreeing(words, numpy(case.shown(case.weights)), mask)
        weights = states.pop("attention")
        return Answer(measures | _agreeing(states, weights, real))


def of_words(case: Case) -> dict[str, TokenValues]:
    """How much each word counts for the output."""
    found = {}
    for name, (known, explainer) in WORDS.items():
        scores = case.scores.get(known)
        found[name] = numpy(explainer(case.model, case.batch, case.predicted) if scores is None else scores)
    return found


def of_states(case: Case) -> dict[str, ItemValues]:
    """How much each state counts for the output: the weight it gets, and what the output loses with it."""
    pooling = Pooling.of(case.values, case.weights, case.items, case.empty)
    erased = tvd(single_logits(pooling).softmax(-1), pooling.logits.softmax(-1)[:, None])
    return {
        "attention": numpy(pooling.weights),
        "state_gradient": numpy(state_gradient(case)),
        "state_leave_one_out": numpy(erased.where(case.items, 0.0)),
    }


def state_gradient(case: Case) -> Float[Tensor, "B N"]:
    """‖∂p/∂h_n‖₂ of each item: that of any of its tokens."""
    assert isinstance(case.model, Network)
    scores = case.scores.get("state_gradient")
    if scores is None:
        scores = StateGradient()(case.model, case.batch, case.predicted)
    none = scores.new_zeros(case.items.shape)
    return none.scatter_reduce(1, case.model.items(case.batch), scores, "amax")


@torch.no_grad()
def of_words_for_states(case: Case) -> Numbers:
    """What states depend on: how spread it is, the share of their own words, and how often one of these is first."""
    assert isinstance(case.model, Network)
    batch = case.batch
    found = shares(state_gradient_norms(case.model, case.model.embed(batch), batch))
    places = torch.arange(found.shape[1], device=found.device)[:, None]
    own = (case.model.items(batch)[:, None] == places) & batch.mask[:, None]
    first = found.masked_fill(~own, 0.0).amax(-1) == found.amax(-1)
    counted = ((found.sum(-1) > 0) & (batch.lengths > 1)[:, None]).cpu().numpy()
    measures = {
        "entropy": normalised_entropy(numpy(found), case.mask[:, None]),
        "own": numpy((found * own).sum(-1)),
        "first": numpy(first),
    }
    return {name: mean_defined(np.where(counted, values, np.nan).T) for name, values in measures.items()}


def _agreeing(importances: dict[str, ItemValues], weights: ItemValues, mask: Bool[np.ndarray, "B N"]) -> Numbers:
    """τ-b of the weights with each importance, and its p-value."""
    measures: Numbers = {}
    for name, values in importances.items():
        found = kendall(weights, values, mask)
        measures |= {f"tau:attention~{name}": found.tau, f"p:attention~{name}": found.p}
    return measures


def _answer(record: Record) -> str:
    """How much of a state comes from its own word, how spread the rest is, and whom attention agrees with."""
    entropy, own = subjects(record, "dispersion", "entropy"), subjects(record, "dispersion", "own").get("states")
    if "states" not in entropy and own is None:
        return ""
    spreading = ""
    if "states" in entropy:
        spreading = f"a normalised entropy of {spread(entropy['states'])} over the words of the text"
    if own is None:
        told, n = f"What moves a state has {spreading}", entropy["states"].n
        meaning = "1 is all words alike, 0 a single one"
    else:
        words = "words" if items(record) is SENTENCES else "word"
        told, n, meaning = f"Of what moves a state {shared(own)} comes from its own {words}", own.n, _meaning(own)
        told += f", with {spreading}" if spreading else ""
    return f"{told} (n = {count(n)}): {meaning}.{_with_attention(record)}"


def _meaning(own: Finding) -> str:
    """What the share of its own word means for a weight on a state."""
    if own.low > MOSTLY:
        return "a state stands mostly for its word, so that a weight on it is one on the word"
    if own.high < MOSTLY:
        return "a state stands for much more than its word, so that a weight on it is not one on the word alone"
    return "about half of it is other words"


def _with_attention(record: Record) -> str:
    tau = subjects(record, "dispersion", "tau")
    told = []
    for what, start in (("states", "state_"), ("words", "")):
        ways = {"by gradient": f"attention~{start}gradient", "by deletion": f"attention~{start}leave_one_out"}
        both = [f"{spread(tau[name])} {way}" for way, name in ways.items() if name in tau]
        told += [f"with the importance of {what} at τ {' and '.join(both)}"] if both else []
    return f" Attention agrees {', '.join(told)}." if told else ""
