"""The tables of erased attention are of the same texts for every ranking, and say where one never flips a text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from assay.records import Record
from studies.results import Result, condensed
from studies.serrano_smith import tables
from studies.serrano_smith.figures import erased as drawn
from tests.report.synthetic import synthetic_record


@pytest.fixture(scope="module")
def record() -> Record:
    return synthetic_record(count=60, audits=("single_weight", "minimal_set"))


@pytest.fixture(scope="module")
def result(record: Record) -> Result:
    about = record.summary["corpus"] | {"skipped": {}}
    model = {"description": "", "epochs": 1, "items": "words", "test": {"accuracy": 0.5}}
    summary = record.summary | {
        "device": "cpu",
        "corpus": about | {"audited": 60},
        "model": record.summary["model"] | model,
    }
    found: Result = condensed(Record(summary, record.instances, record.examples)) | tables.spread(record)
    return json.loads(json.dumps(found))


def test_a_box_holds_the_texts_that_its_ranking_never_flips(record: Record, result: Result) -> None:
    rows = record.audit_rows("minimal_set")
    for name in tables.RANKINGS:
        never = rows[f"never:{name}"].to_numpy()
        shares = np.where(never == 1, 1.0, rows[f"erased:{name}"].to_numpy())
        assert result["erased"][name] == pytest.approx(np.quantile(shares, tables.QUANTILES), abs=1e-4)
        cell = f"{shares.mean():.3f} ({100 * never.mean():.1f}%)"
        assert cell in tables.areas({"flan-rnn": result})
    assert rows["never:random"].to_numpy().sum() > rows["never:optimum"].to_numpy().sum() > 0


def test_an_earlier_result_gives_the_same_mean_from_the_texts_that_are_flipped(record: Record, result: Result) -> None:
    rows = record.audit_rows("minimal_set")
    old = {name: part for name, part in result.items() if name != "erased"}
    old["findings"] = [row for row in result["findings"] if row["measure"] != "erased"]
    for name in tables.RANKINGS:
        shares, never = rows[f"erased:{name}"].to_numpy(), rows[f"never:{name}"].to_numpy()
        row = next(row for row in old["findings"] if (row["measure"], row["subject"]) == ("never", name))
        some = shares[never == 0]
        old["findings"].append(row | {"measure": "fraction", "mean": float(some.mean()), "n": len(some)})
        assert tables.mean_erased(old, name) == pytest.approx(shares.mean(), abs=1e-5)
        assert tables.quantiles(old, name) is None
    assert "| – |" in tables.erased({"flan-rnn": old}) and tables.areas({"flan-rnn": old}) == tables.areas(
        {"flan-rnn": result}
    )


def test_the_table_of_the_first_page_names_texts_that_never_flip(record: Record, result: Result) -> None:
    lines = tables.summary(dict.fromkeys(tables.FLAT, result)).splitlines()
    assert len(lines) == 2 + len(tables.FLAT)
    rows = record.audit_rows("minimal_set")
    for name, cell in zip(tables.SHOWN, lines[2].split(" | ")[1:], strict=False):
        mean, never = (100 * rows[f"{measure}:{name}"].to_numpy().mean() for measure in ("erased", "never"))
        assert cell == f"{mean:.0f} % (never {never:.0f} %)"


def test_the_figure_tells_how_many_texts_are_never_flipped(record: Record, result: Result) -> None:
    told = json.dumps(drawn({("imdb", "flan-rnn"): result}).to_dict())
    lost = record.audit_rows("minimal_set")["never:random"].to_numpy().mean()
    assert f'"never": "{lost:.0%}"' in told


def test_trials_need_nothing_that_draws() -> None:
    modules = "studies.planned, studies.serrano_smith.__main__"
    absent = "import sys; sys.modules.update(dict.fromkeys(('altair', 'jinja2', 'cyclopts', 'vl_convert')))"
    root = Path(tables.HERE).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", f"{absent}; import {modules}"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
