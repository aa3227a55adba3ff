from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.grading.leaderboard import leaderboard
from assay.records import Record
from assay.report.audit import render
from tests.report.parsed import Page, words
from tests.report.synthetic import SIGNED


@pytest.fixture(scope="module")
def crowded(crowd: Record) -> str:
    return render(crowd)


def test_many_explainers_do_not_make_a_large_page(crowd: Record, crowded: str) -> None:
    assert len(crowded.encode()) < 1_500_000
    assert "All 30 verdicts in words" in crowded
    assert "All numbers over all texts (435 rows)" in crowded
    groups = {words(row).split(" ± ")[0].split()[-2] for row in Page(crowded).texts("tr") if " ~ " in row}
    assert groups == {"all"}


def test_the_leaderboard_stands_after_the_verdict_with_the_best_in_bold(contest: Record) -> None:
    text = render(contest)
    board = leaderboard(contest)
    assert board is not None
    assert text.index('id="verdict"') < text.index('id="leaderboard"') < text.index('id="audited"')
    part = text[text.index('<section id="leaderboard"') : text.index('<section id="audited"')]
    shown = Page(part)
    expected = [cell.text for row in (*board.rows, *board.apart) for cell in row.cells if cell.best]
    assert shown.texts("td", "best") == expected
    tied = [f"{cell.text} ≈" for row in (*board.rows, *board.apart) for cell in row.cells if cell.tied]
    assert shown.texts("td", "tied") == tied
    heads = shown.texts("th")[: 3 + len(board.measures)]
    assert heads[3:] == [f"{measure.head}\u00a0{measure.arrow}" for measure in board.measures]
    for measure in board.measures:
        assert measure.meaning in shown.texts("dd")
    assert f"Rows stand {board.order}." in words(shown.texts("p")[0])


def test_plausibility_is_labelled_as_what_people_find_convincing(human: Record) -> None:
    text = render(human)
    part = Page(text[text.index('<section id="leaderboard"') : text.index('<section id="audited"')])
    told = [each for each in part.texts("dd") if each.endswith("what people find convincing, not what the model did")]
    assert len(told) == 3


def test_squares_hold_a_number_in_every_cell(contest: Record, crowd: Record, crowded: str) -> None:
    for record, text in ((contest, render(contest)), (crowd, crowded)):
        size = len(record.summary["explainers"])
        parts = text.split('<figure class="matrix">')[1:]
        assert len(parts) == (3 if record is crowd else 2)  # a single explainer with signs has none to compare with
        for part in parts:
            table = part[part.index("<tbody>") : part.index("</tbody>")]
            cells = Page(f"<table>{table}</tbody></table>").texts("td")
            rows = table.count('<th scope="row">')
            assert rows == (size if "<b>Same sign" not in part else len(SIGNED & set(record.summary["explainers"])))
            assert len(cells) == rows**2
            assert sum(cell == "" for cell in cells) == rows


def test_many_classes_do_not_make_a_large_page(make: Callable[..., Record]) -> None:
    classes = tuple(f"entity{number}" for number in range(300))
    text = render(make(count=400, classes=classes, audits=("agreement", "single_weight", "minimal_set")))
    assert len(text.encode()) < 600_000
    shown = words("".join(Page(text).texts("main")))
    assert "entity18, entity19 and 280 more" in shown
    assert "All numbers over all texts (15 rows)" in shown
    assert "All numbers (" not in shown


def test_explainers_that_were_left_out_and_what_others_say_of_themselves_are_told(crowded: str) -> None:
    shown = words("".join(Page(crowded).texts("main")))
    assert "rollout, flowthe model has no stack of self-attention layers" in shown
    assert "hotflipthe model has no table of embeddings" in shown
    assert "integrated_gradients what the scores leave unexplained (share of the output) 4.2 × 10⁻⁵" in shown
    assert "3.78 × 10⁻⁵ to 4.62 × 10⁻⁵ 30" in shown


def test_a_page_explains_only_words_that_it_uses(page: str, crowded: str) -> None:
    terms = [
        set(Page(text[text.index('<section id="glossary"') : text.index("</main>")]).texts("dt"))
        for text in (page, crowded)
    ]
    assert "JSD" in terms[0] - terms[1]
    assert not {"ΔJS", "smallest set"} & (terms[0] | terms[1])
    assert {"ROAR", "comprehensiveness", "AUPRC"} <= terms[1] - terms[0]
