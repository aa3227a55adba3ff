"""The linear datamodelling score of methods whose worth is known."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from assay.audits.influence_checks import Lds
from assay.influence.setting import Influence, Setting
from assay.influence.unrolled import Unrolled
from tests.influence.training_runs import HARD, setting, training_run


@dataclass(frozen=True)
class Chance:
    """Random scores."""

    seed: int = 0

    def unfit(self, setting: Setting) -> str | None:
        return "it is not for losses" if setting.target == "loss" else None

    def __call__(self, setting: Setting) -> Influence:
        shape = (len(setting.queries), len(setting.train))
        return Influence(np.random.default_rng(self.seed).normal(size=shape), covered=0.5)


def test_the_exact_derivative_predicts_removals_and_chance_does_not(tmp_path: Path) -> None:
    made, asked = training_run("average", rows=60, training=replace(HARD, batch_size=20, epochs=3), dropout_decoder=0.1)
    known = setting(made, asked)
    audit = Lds(shares=(0.05, 0.5), subsets=12, folder=tmp_path)
    found = audit(known, {"unrolled": Unrolled(), "chance": Chance()})
    by_name = {(each.method, each.share): each for each in found.scores}
    assert by_name["unrolled", 0.05].lds.mean > 0.95
    assert by_name["unrolled", 0.05].lds.mean > by_name["unrolled", 0.5].lds.mean > 0
    assert abs(by_name["chance", 0.05].lds.mean) < 0.5
    assert by_name["chance", 0.5].covered == 0.5 and by_name["unrolled", 0.5].seconds > 0
    assert len(list(tmp_path.iterdir())) == 24
    assert json.loads(json.dumps(asdict(found)))["queries"] == 4
    other = replace(audit, shares=(0.05,), seeds=(1,))(replace(known, target="loss"), {"chance": Chance()})
    assert other.left_out == {"chance": "it is not for losses"} and not other.scores
    assert other.ceilings[0.05].low < other.ceilings[0.05].mean < 1
