from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from assay.records import Finding, Record, finding_rows
from assay.report.tables import Matrix, matrices, square
from assay.writing import number
from tests.report.synthetic import SIGNED, remade


def with_taus(record: Record, taus: dict[tuple[str, str], float]) -> Record:
    names = sorted({name for pair in taus for name in pair})
    rows = [Finding("agreement", f"{a}~{b}", "tau", "all", t, t, t, 0.1, 9) for (a, b), t in taus.items()]
    summary = record.summary | {"findings": finding_rows(rows), "explainers": dict.fromkeys(names, "")}
    return remade(record, summary=summary)


def cells(matrix: Matrix) -> dict[tuple[str, str], str]:
    return {
        (one, other): cell.text
        for one, row in zip(matrix.names, matrix.rows, strict=True)
        for other, cell in zip(matrix.names, row, strict=True)
    }


def test_every_pair_stands_twice_with_its_number(contest: Record) -> None:
    (shown,) = matrices(contest, "agreement")
    found = cells(shown)
    for finding in contest.findings:
        if (finding.audit, finding.group) == ("agreement", "all"):
            one, other = finding.subject.split("~")
            assert found[one, other] == found[other, one] == number(finding.mean, 2)
    assert all(found[name, name] == "" for name in contest.summary["explainers"])


def test_overlap_and_signs_stand_in_the_order_of_the_rankings(crowd: Record) -> None:
    (ranked,), (overlap, signs) = matrices(crowd, "agreement"), matrices(crowd, "consistency")
    assert ranked.names == overlap.names
    assert signs.names == tuple(name for name in ranked.names if name in SIGNED)
    assert [each.kind.title for each in (overlap, signs)] == ["Overlap of the top words", "Same sign"]
    assert matrices(crowd, "erasure") == []


def test_families_stand_together(record: Record) -> None:
    families = [["a", "d", "g"], ["b", "e"], ["c", "f", "h"]]
    home = {name: place for place, family in enumerate(families) for name in family}
    draw = np.random.default_rng(0)
    taus = {
        pair: (0.8 if home[pair[0]] == home[pair[1]] else 0.1) + draw.normal(0, 0.03)
        for pair in combinations("abcdefgh", 2)
    }
    (shown,) = matrices(with_taus(record, taus), "agreement")
    runs = [
        home[name] for place, name in enumerate(shown.names) if place == 0 or home[name] != home[shown.names[place - 1]]
    ]
    assert sorted(runs) == [0, 1, 2]


def test_few_have_numbers_and_many_have_hundredths_with_names_on_hover(contest: Record, crowd: Record) -> None:
    (few,), (many,) = matrices(contest, "agreement"), matrices(crowd, "agreement")
    assert (few.roomy, many.roomy) == (True, False)
    assert {cell.title for row in few.rows for cell in row} == {""}
    values = square(crowd, "agreement", "tau")
    assert values is not None
    places = {name: place for place, name in enumerate(crowd.summary["explainers"])}
    for one, row in zip(many.names, many.rows, strict=True):
        for other, cell in zip(many.names, row, strict=True):
            if one != other:
                value = values[places[one], places[other]]
                assert cell.text == f"{round(100 * value)}".replace("-", "−")
                assert cell.title == f"{one} ~ {other}: {number(value, 2)}"


@pytest.mark.parametrize(("tau", "level"), [(1.0, 8), (0.5, 4), (0.05, 0), (-0.5, -4), (-1.0, -8)])
def test_the_shade_follows_the_number(tau: float, level: int, record: Record) -> None:
    (shown,) = matrices(with_taus(record, {("a", "b"): tau}), "agreement")
    assert shown.rows[0][1].level == shown.rows[1][0].level == level
    assert shown.rows[0][0].level == 0


def test_a_pair_without_a_number_has_a_dash(record: Record) -> None:
    (shown,) = matrices(with_taus(record, {("a", "b"): 0.5, ("a", "c"): 0.4, ("a", "d"): 0.1}), "agreement")
    assert cells(shown)["b", "c"] == "–"


def test_without_pairs_there_is_no_square(make: Callable[..., Record]) -> None:
    assert matrices(make(count=12, explainers=("attention",)), "agreement") == []
