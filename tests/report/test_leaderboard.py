from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from assay.document import Fold
from assay.grading.grade import verdicts
from assay.grading.leaderboard import Cell, Leaderboard, leaderboard
from assay.lookup import side_by_side, texts
from assay.records import Record
from assay.report.audit import brief
from assay.report.console import shown as printable
from assay.writing import number
from tests.report.synthetic import remade


def board_of(record: Record) -> Leaderboard:
    board = leaderboard(record)
    assert board is not None
    return board


def cell(board: Leaderboard, name: str, measure: str) -> Cell:
    place = [each.name for each in board.measures].index(measure)
    return next(row for row in (*board.rows, *board.apart) if row.name == name).cells[place]


def given(record: Record, audit: str, measure: str, values: dict[str, np.ndarray]) -> Record:
    """The record with other numbers of one measure, in its instances and its findings."""
    instances, findings = record.instances, record.summary["findings"]
    mine = np.array(instances["audit"].to_pylist()) == audit
    for name, numbers in values.items():
        column = np.full(len(mine), np.nan)
        column[mine] = numbers
        place = instances.column_names.index(f"{measure}:{name}")
        instances = instances.set_column(place, f"{measure}:{name}", [column])
        wanted = (audit, name, measure, "all")
        mean = {"mean": float(np.nanmean(numbers))}
        findings = [
            row | mean if (row["audit"], row["subject"], row["measure"], row["group"]) == wanted else row
            for row in findings
        ]
    return remade(record, instances=instances, summary=record.summary | {"findings": findings})


def test_only_measures_that_were_run_are_columns_and_all_explainers_rows(contest: Record, human: Record) -> None:
    board = board_of(contest)
    found = {(f.audit, f.measure) for f in contest.findings}
    assert [(m.audit, m.name) for m in board.measures] == COLUMNS
    assert all((measure.audit, measure.name) in found for measure in board.measures)
    assert {row.name for row in board.rows} == set(contest.summary["explainers"]) - {"random"}
    assert [row.name for row in board.apart] == ["random", "chance"]
    assert {m.audit for m in board_of(human).measures} == {"erasure", "plausibility"}


AUDITS = ("truth", "erasure", "roar", "shortcut", "sanity", "stability")
COLUMNS = [
    ("truth", "auprc"),
    *(("erasure", measure) for measure in ("comprehensiveness", "sufficiency", "flip", "morf")),
    ("roar", "fall_gain"),
    ("shortcut", "shown"),
    ("sanity", "similarity"),
    ("stability", "steadiness"),
]


def test_cells_are_the_means_of_the_findings(contest: Record) -> None:
    board = board_of(contest)
    for row in (*board.rows, *board.apart):
        for measure, shown in zip(board.measures, row.cells, strict=True):
            found = contest.finding(measure.audit, row.name, measure.name)
            assert shown.text == number(None if found is None else found.mean)


def test_the_best_is_the_highest_where_more_is_better_and_else_the_lowest(contest: Record) -> None:
    board = board_of(contest)
    for place, measure in enumerate(board.measures):
        means = {row.name: contest.finding(measure.audit, row.name, measure.name) for row in board.rows}
        order = sorted(means, key=lambda name: means[name].mean)  # type: ignore[union-attr]
        best = order[-1] if measure.rises else order[0]
        assert [row.name for row in (*board.rows, *board.apart) if row.cells[place].best] == [best], measure


@pytest.mark.parametrize(("measure", "sign"), [("comprehensiveness", 1), ("sufficiency", -1)])
def test_a_tie_is_what_the_same_texts_do_not_tell_apart(measure: str, sign: int, contest: Record) -> None:
    draw = np.random.default_rng(0)
    level = draw.normal(0, 1, 80)  # texts differ much more than explainers do
    step = np.where(np.arange(80) % 2, 0.1, -0.09)
    numbers = {
        "attention": level,
        "gradient": level - sign * step,
        "gradient_norm": level - sign * 0.01,
        "leave_one_out": level - sign * (0.05 + step),
        "input_x_gradient": level - sign,
        "random": level - sign * step,
        "chance": level + sign * 0.5,
    }
    board = board_of(given(contest, "erasure", measure, numbers))
    marks = {name: (cell(board, name, measure).best, cell(board, name, measure).tied) for name in numbers}
    assert marks == {
        "attention": (True, False),
        "gradient": (False, True),
        "gradient_norm": (False, False),
        "leave_one_out": (False, False),
        "input_x_gradient": (False, False),
        "random": (False, True),
        "chance": (False, True),  # better than any explainer, and still not the best of them
    }


def test_equal_means_are_all_the_best(contest: Record) -> None:
    numbers = dict.fromkeys((*contest.summary["explainers"], "chance"), np.ones(80)) | {"gradient": np.zeros(80)}
    board = board_of(given(contest, "erasure", "comprehensiveness", numbers))
    best = {name for name in numbers if cell(board, name, "comprehensiveness").best}
    assert best == set(numbers) - {"gradient", "random", "chance"}
    assert cell(board, "random", "comprehensiveness").tied


def test_what_reads_the_same_counts_as_the_same(contest: Record) -> None:
    draw = np.random.default_rng(2)
    tiny = {name: draw.normal(0.5, 1e-5, 80) - 1e-5 * place for place, name in enumerate(contest.summary["explainers"])}
    for measure in [measure for measure in board_of(contest).measures if measure.faithful]:
        contest = given(contest, measure.audit, measure.name, tiny)
    board = board_of(contest)
    assert {row.rank for row in board.rows} == {"3.0"}
    assert all(each.best for row in board.rows for each in row.cells[:7])


def test_texts_without_a_number_are_left_out_of_a_comparison(contest: Record) -> None:
    level = np.random.default_rng(1).normal(0, 1, 80)
    gaps = np.where(np.arange(80) < 40, np.nan, level - 0.01)
    numbers = dict.fromkeys(contest.summary["explainers"], level - 1) | {"attention": level, "gradient": gaps}
    board = board_of(given(contest, "erasure", "comprehensiveness", numbers))
    assert not cell(board, "gradient", "comprehensiveness").tied


def test_rows_stand_by_their_mean_rank_over_the_measures_of_faithfulness(contest: Record) -> None:
    board = board_of(contest)
    ranks: dict[str, list[float]] = {row.name: [] for row in board.rows}
    for measure in board.measures:
        if measure.audit in ("truth", "erasure", "roar", "shortcut"):
            means = {name: contest.finding(measure.audit, name, measure.name) for name in ranks}
            for name in ranks:
                ahead = [(means[other].mean - means[name].mean) * (1 if measure.rises else -1) for other in ranks]  # type: ignore[union-attr]
                ranks[name].append(0.5 + sum(step > 0 for step in ahead) + 0.5 * sum(step == 0 for step in ahead))
    for row in board.rows:
        assert row.rank == f"{np.mean(ranks[row.name]):.1f}"
    given = {verdict.name: verdict for verdict in verdicts(contest)}
    order = [given[row.name].effect or 0.0 for row in board.rows]
    assert order == sorted(order, reverse=True)
    assert [row.verdict for row in board.rows] == [
        f"{v.grade} {v.effect:.2f}" for v in given.values() if v.grade != "reference"
    ]
    assert board.order == (
        "by the number of the verdict, then by the mean rank over AUPRC, comprehensiveness, sufficiency, flip, MoRF, "
        "ROAR, and shortcut"
    )


def test_what_people_like_does_not_change_the_order(human: Record) -> None:
    worst = board_of(human).rows[-1].name
    liked = {worst: np.ones(60)}
    for measure in ("token_f1", "iou_f1", "auprc"):
        human = given(human, "plausibility", measure, liked)
    assert board_of(human).rows[-1].name == worst
    assert cell(board_of(human), worst, "token_f1").best


def test_without_a_measure_of_faithfulness_the_plan_gives_the_order(make: Callable[..., Record]) -> None:
    record = make(count=20, audits=("sanity",))
    board = board_of(record)
    assert [row.name for row in board.rows] == [name for name in record.summary["explainers"] if name != "random"]
    assert {row.rank for row in board.rows} == {"–"}
    assert board.order.startswith("in the order of the plan")


def test_without_a_measure_there_is_no_leaderboard(make: Callable[..., Record]) -> None:
    record = make(count=20, audits=("agreement",))
    assert leaderboard(record) is None
    assert not any(isinstance(block, Fold) for block in brief(record, 100))


def test_columns_of_the_same_name_belong_to_their_audit(make: Callable[..., Record]) -> None:
    record = make(count=20, audits=("truth", "plausibility"))
    for audit in ("truth", "plausibility"):
        table = record.audit_rows(audit)
        values = side_by_side(record, audit, ["auprc:gradient", "absent:gradient"])
        assert values[:, 0].tolist() == table["auprc:gradient"].to_pylist()
        assert np.isnan(values[:, 1]).all()
        assert texts(record, audit).tolist() == table["example"].to_pylist()


def test_costs_stand_beside_and_may_be_missing(contest: Record) -> None:
    board = board_of(contest)
    assert board.costs == ("forward", "backward", "seconds")
    costs = {row.name: row.costs for row in (*board.rows, *board.apart)}
    assert costs["gradient"] == ("3.5", "1", "2.10")
    assert costs["random"] == ("13.5", "1", "8.90")
    assert costs["chance"] == ("–", "–", "–")
    old = {key: value for key, value in contest.summary.items() if key not in ("explainer_cost", "explainer_seconds")}
    assert board_of(remade(contest, summary=old)).costs == ()


def printed(record: Record) -> str:
    console = Console(width=100, file=io.StringIO(), no_color=True)
    console.print(*printable(block for block in brief(record, 100) if isinstance(block, Fold)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("which", ["contest", "crowd", "human"])
def test_the_terminal_table_fits_and_marks_the_best(which: str, request: pytest.FixtureRequest) -> None:
    record: Record = request.getfixturevalue(which)
    lines, board = printed(record).splitlines(), board_of(record)
    assert max(map(len, lines)) <= 100
    assert sum(f"{measure.short} {measure.arrow}" in lines[1] for measure in board.measures) >= 3
    for row in board.rows:
        starts = (f"{row.name}  ", f"{row.name[:25]}…")
        line = next(line.strip() for line in lines if line.strip().startswith(starts))
        assert row.costs[-1] in line
        assert f"{row.cells[0].text}{'*' if row.cells[0].best else '≈' if row.cells[0].tied else ''}" in line
    assert f"Ordered {board.order}" in " ".join(" ".join(lines).split())


def test_square_brackets_in_names_are_not_markup(contest: Record) -> None:
    explainers = contest.summary["explainers"] | {"[red]mine[/red]": "Mine."}
    assert "[red]mine[/red]" in printed(remade(contest, summary=contest.summary | {"explainers": explainers}))
