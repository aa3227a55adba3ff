"""Other attention with the same prediction: the furthest one, and how much of it the published search finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Answer, BaseAudit, Case, Scores, numpy, without_pooling
from assay.audits.stack import of_stack, parts, stacked, without_attention
from assay.intervene.adversary import Search, furthest
from assay.intervene.stack_attention import Stack, StackSearch, limit
from assay.lookup import bounded, known, told
from assay.lookup import stacked as stack_audited
from assay.metrics.information import MAX_JSD
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.types import Batch, Model
from assay.writing import evidence, number

FAR = MAX_JSD / 2
"""Beyond half of the largest possible divergence (0.69), two attention maps tell different stories."""

SEARCHED = "This is a lower bound from a search: the furthest one may be further away."
FURTHEST = Story(
    title="Could another heatmap explain the same prediction?",
    question="How different can the attention be while the prediction stays the same?",
    measures=(
        Measure(
            "jsd",
            "furthest equal-prediction attention (JSD)",
            short="furthest same-prediction attention (JSD)",
            help="how far another attention may lie away",
            main=True,
        ),
        Measure("jsd_upper", "certified upper bound (JSD)"),
        Measure("tvd", "its output change (TVD)"),
        Measure("jsd_of_k", "mean of several such attentions (JSD)"),
        Measure("max_attention", "largest attention weight"),
    ),
    drawings=(
        Drawing(
            "histogram",
            "adversary",
            (
                "Distance of the furthest attention with the same prediction. The dashed line is the largest "
                "divergence that two distributions can have."
            ),
            {
                "columns": ["jsd"],
                "title": "JSD from the observed attention",
                "edges": [0, 0.7, 14],
                "line": MAX_JSD,
                "line_label": "limit 0.69",
                "of": "the furthest equal-prediction attention (JSD)",
            },
        ),
        Drawing(
            "quarters",
            "adversary_by_attention",
            (
                "The same distance, by how peaked the observed attention is. Thin line: 5 to 95 % of texts; "
                "bar: 25 to 75 %; thick tick: median."
            ),
            {"column": "jsd", "title": "JSD from the observed attention"},
        ),
    ),
    reading=(
        "Mass near the dashed limit means that for most texts some quite different heatmap goes with the same "
        "prediction. One would hope for small distances where attention is peaked (upper rows)."
    ),
    rule=Rule(
        "Fails when another attention with the same prediction surely lies further away than a divergence "
        "of 0.35, half of the most there can be. Passes when it is certain that none does; what only a "
        "search did not find is no such certainty. In between it gets a warning."
    ),
    about="attention",
    terms=("TVD", "JSD"),
)

TRANSFORMER = replace(
    FURTHEST,
    title="Could other attention go with the same prediction?",
    reading=(
        "In every layer, head and place other weights are searched for that leave the prediction where it "
        "is; the distance is the mean over all of them. Places that the prediction cannot depend on do "
        "not count. What was found exists, but the search may have missed what lies further away. Mass "
        "near the dashed limit means that for most texts quite different attention goes with the same "
        "prediction."
    ),
    drawings=(
        replace(
            FURTHEST.drawings[0],
            caption=(
                "Distance of the furthest attention that was found with the same prediction, the mean over "
                "layers, heads and places. The dashed line is the largest divergence that two distributions can "
                "have."
            ),
        ),
        *FURTHEST.drawings[1:],
    ),
)
"""The same of a stack of layers that nothing pools."""


@dataclass(frozen=True)
class Adversary(BaseAudit):
    """ε-max JSD: the largest divergence of an attention that moves the output by at most ε; exact for two classes.

    `jsd_upper` is certified for any number: no attention within ε diverges more.

    In a stack of self-attention the weights of every layer, head and attending place are others at once, found by a
    search of so many `steps`, and the divergence is the mean over all of them; `jsd_upper` is then the most that any
    other attention has, whatever the answer. Places that the answer cannot depend on do not count.
    """

    epsilon: float = 0.01
    k: int = 5
    steps: int = 30
    story: ClassVar[Story] = FURTHEST
    transformer: ClassVar[Story] = TRANSFORMER
    paper: str = "Jain and Wallace (2019), section 4.2.2, equation 1, figures 7 and 8"

    def kind(self, classes: int) -> str:
        return {2: "exact", 3: "bracket"}.get(classes, "lower bound")

    def searches(self, model: Model) -> bool:
        return stacked(model)

    unfit = staticmethod(without_attention)

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(_answer(record), *_grade(record))

    def __call__(self, case: Case) -> Answer:
        if stacked(case.model):
            return self._of_stack(case)
        found = furthest(case.values, case.weights, case.items, self.epsilon, self.k)
        measures = {
            "jsd": found.jsd[:, 0],
            "jsd_upper": found.upper,
            "tvd": found.tvd[:, 0],
            "jsd_of_k": found.jsd.mean(-1),
            "max_attention": case.weights.amax(-1),
        }
        return Answer(
            {name: numpy(values) for name, values in measures.items()},
            {"adversary": numpy(case.shown(found.weights[:, 0]))},
        )

    def _of_stack(self, case: Case) -> Answer:
        found = [self._searched(case, case.batch[rows]) for rows in parts(case)]
        measures = {name: numpy(torch.cat([part[name] for part, _ in found])) for name in found[0][0]}
        return Answer(measures, {"adversary": numpy(torch.cat([shown for _, shown in found]))})

    def _searched(self, case: Case, batch: Batch) -> tuple[dict[str, Float[Tensor, " B"]], Scores]:
        """The measures of some texts, and what is then read of each word."""
        model = of_stack(case)
        stack = Stack.of(model, batch)
        found = StackSearch(self.epsilon, self.steps)(model, batch, stack)
        measures = {"jsd": found.jsd, "jsd_upper": limit(stack), "tvd": found.tvd, "max_attention": stack.peak}
        return measures, stack.read(found.weights, batch.ids.shape[1])


def _answer(record: Record) -> str:
    """Two sentences on the furthest attention with the same prediction: how far, and how certain that is."""
    found, upper = known(record, "adversary", "jsd"), known(record, "adversary", "jsd_upper")
    if found is None:
        return ""
    epsilon = record.summary.get("plan", {}).get("epsilon")
    within = f"within {epsilon:g}" if isinstance(epsilon, (int, float)) else "within ε"
    least, most = f"{found.mean:.2f}", f"{MAX_JSD if upper is None else upper.mean:.2f}"
    between = f"the furthest one lies at least {least}, which a search found, and provably at most {most} away."
    certainty = {
        "exact": "This is exact: no attention with the same prediction is further away.",
        "to rounding": "To the rounding of single precision, no attention with the same prediction is further away.",
        "bracket": f"The furthest one is certified to lie between this and {most} on average.",
        "lower bound": f"On average {between}" if most < f"{MAX_JSD:.2f}" else SEARCHED,
    }
    other, over = "Another attention map gives", ""
    if stack_audited(record):
        other, over = "Other weights in all layers give", " over layers, heads, places and texts"
    return (
        f"{other} the same prediction ({within}) at a Jensen–Shannon divergence of "
        f"{least} on average{over}, where {MAX_JSD:.2f} is the most there can be "
        f"({evidence(found.low, found.high, found.n)}). "
        f"{certainty.get(_kind(record, found), SEARCHED)}"
    )


def _kind(record: Record, found: Finding) -> str:
    if found.kind in ("exact", "to rounding", "bracket", "lower bound"):
        return found.kind
    return str(record.summary["audits"].get("adversary", {}).get("kind", "lower bound"))


def _grade(record: Record) -> tuple[str, str]:
    found, upper = bounded(record, "adversary", "jsd"), bounded(record, "adversary", "jsd_upper")
    if found is None:
        return "", ""
    certain = _kind(record, found) in ("exact", "to rounding")
    most = found if certain else upper
    why = f"Another attention with the same prediction lies {told(found)} away (JSD) on average"
    if found.low > FAR:
        return "fail", f"{why}."
    if most is not None and most.high <= FAR:
        return "pass", f"{why}, and none further than {number(most.mean, 2)}."
    return "warn", f"{why}{'' if certain else '; there may be one further away'}."


ALIKE = 1e-4  # JSDs this close count as the same


SEARCH = Story(
    title="Does a search find the furthest attention?",
    question="How much of the furthest attention does the published search find?",
    measures=(
        Measure("jsd", "furthest equal-prediction attention (JSD)"),
        Measure("searched"),
        Measure("found", main=True),
        Measure("reached", main=True),
    ),
    reading=(
        "A search of some hundred steps was the published way to find another attention with the same "
        "prediction. What it finds is a lower bound; the furthest one is computed, exactly where there are "
        "two classes. A low share means that the search makes attention look harder to replace than it is."
    ),
    ungraded="It tells how far a search can be trusted; it is no test of an explanation.",
    about="model",
    kinds=dict.fromkeys(("exact", "to rounding", "bracket", "lower bound", "sample"), "search"),
)


@dataclass(frozen=True)
class Searched(BaseAudit):
    """ε-max JSD by the paper's ascent of 500 steps, beside the furthest attention, which is exact for two classes.

    What the search finds is a lower bound, and all numbers of this audit are about it. `found` is the share of the
    furthest divergence that the search reaches, where there is any, and `reached` says whether it reaches all of it.
    """

    epsilon: float = 0.01
    k: int = 5
    steps: int = 500
    seed: int = 0
    reliability: ClassVar[str] = "search"
    story: ClassVar[Story] = SEARCH
    paper: str = "Jain and Wallace (2019), section 4.2.2; the furthest attention: this tool"

    unfit = staticmethod(without_pooling)

    def conclude(self, record: Record) -> Conclusion:
        found, reached = known(record, "searched", "found"), known(record, "searched", "reached")
        if found is None or reached is None:
            return Conclusion()
        return Conclusion(
            f"The search of Jain and Wallace (2019) reaches {found.mean:.0%} of the largest divergence on average "
            f"({evidence(found.low, found.high, found.n)}), and all of it in {reached.mean:.0%} of the texts."
        )

    def __call__(self, case: Case) -> Answer:
        given = case.values, case.weights, case.items, self.epsilon, self.k
        best = furthest(*given).jsd[:, 0]
        met = Search(self.steps, seed=self.seed)(*given).jsd[:, 0]
        share = (met / best).where(best > ALIKE, torch.nan)
        measures = {"jsd": best, "searched": met, "found": share, "reached": (best - met <= ALIKE).double()}
        return Answer({name: numpy(values) for name, values in measures.items()})
