"""Do predictions about training texts come true? The model is trained again without some, and answers."""

from __future__ import annotations

from typing import Any

from assay.audits.influence_checks import Lds, Removal
from assay.data.batches import tokenise
from assay.data.matching import examples_for
from assay.errors import AssayError, unknown
from assay.influence import METHODS
from assay.influence.setting import Method
from assay.run.background import Background
from assay.run.resume import finite

KINDS = ("removal", "lds")
CHECKED = 50  # test texts that a check asks about


def checked(
    background: Background, name: str, method: Method, kind: str, retrainings: int = 20, seed: int = 0
) -> dict[str, Any]:
    """What training again says of a method's predictions for some test texts, beside chance or simple similarity."""
    if background.training_run is None:
        raise AssayError("A check trains the model again, and how this one was trained is not known; leave it out.")
    if kind not in KINDS:
        raise unknown("check", kind, KINDS)
    if retrainings < 2:
        raise AssayError(f"A check needs at least two trainings, not {retrainings}.")
    examples = examples_for(background.corpus, "test", background.model.classes)
    rows, _ = tokenise(examples[:CHECKED], background.model.tokeniser, background.model.tokeniser.options.longest)
    if not rows:
        raise AssayError("The corpus has no test text that the model can read, so nothing can be checked.")
    if kind == "lds":
        methods = {name: method} | ({} if name == "gradient_dot" else {"gradient_dot": METHODS["gradient_dot"]})
        found = Lds((0.5,), retrainings, seed=seed)(background.setting(rows), methods)
        scores = [
            {"method": each.method, "lds": each.lds.mean, "low": each.lds.low, "high": each.lds.high}
            | {"seconds": each.seconds, "covered": each.covered}
            for each in found.scores
        ]
        whole: dict[str, Any] = finite(
            {"lds": {"methods": scores, "subsets": found.subsets, "share": 0.5, "queries": found.queries}}
        )
        return whole
    count, draws = min(20, len(background.rows) // 4), max(1, min(5, retrainings // 4))
    removal = Removal((count,), draws, seed=seed)
    made = removal(background.setting(rows[: retrainings - draws]), {name: method})
    told = [
        {"method": each.method, "count": each.count, "predicted": each.predicted.mean}
        | {"measured": each.real.mean, "low": each.real.low, "high": each.real.high}
        for each in made.removed
    ]
    told += [
        {
            "method": "chance",
            "count": count,
            "predicted": None,
            "measured": each.mean,
            "low": each.low,
            "high": each.high,
        }
        for count, each in made.chance.items()
    ]
    measured: dict[str, Any] = finite({"removal": {"rows": told, "queries": made.queries}})
    return measured
