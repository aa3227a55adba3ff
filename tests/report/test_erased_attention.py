"""What the page says and tabulates of erased attention: numbers of the record, in words that fit the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from assay.audits.minimal_set import RANKINGS, MinimalSet, shares
from assay.audits.single_weight import SingleWeight
from assay.records import Record
from assay.report.audit import render
from assay.report.canvas import svg
from assay.report.examples import groups, notes
from assay.report.facts import facts, glossary
from assay.report.figures import figure as figure_of
from assay.report.heatmaps import line
from assay.report.sections import captions, sections
from assay.report.tables import flip_tables, matrices
from assay.run.reporting import Result
from assay.stories import Grid
from assay.writing import interval, number
from tests.report.parsed import Page, words
from tests.report.synthetic import changed, remade

SUBJECTS = ("attention", "gradient", "product")


@pytest.fixture(scope="module")
def text(erased: Record) -> str:
    return render(erased)


def shortest(record: Record) -> str:
    return MinimalSet().conclude(record).answer


def ranking_rows(record: Record) -> Grid:
    return MinimalSet().conclude(record).tables[0]


def values(record: Record, audit: str, column: str) -> np.ndarray:
    """The numbers of the texts that have one."""
    found = np.array([row[column] for row in record.audit_rows(audit).to_pylist()], dtype=float)
    return found[np.isfinite(found)]


def share(record: Record, audit: str, column: str) -> str:
    return f"{100 * values(record, audit, column).mean():.1f} %"


def replaced(record: Record, column: str, numbers: list[float]) -> Record:
    """The record with these numbers in the rows of the smallest sets."""
    mine = np.array(record.instances["audit"].to_pylist()) == "minimal_set"
    filled = np.full(len(mine), np.nan)
    filled[np.flatnonzero(mine)[: len(numbers)]] = numbers
    place = record.instances.column_names.index(column)
    return remade(record, instances=record.instances.set_column(place, column, [filled]))


def section_of(text: str, title: str) -> str:
    start = text.index(f">{title}</h3>")
    return text[start : text.index('<details class="card"', start) if '<details class="card"' in text[start:] else None]


def test_the_answer_tells_the_optimum_attention_and_a_random_order(erased: Record) -> None:
    told = shortest(erased)
    assert told is not None
    medians = {name: 100 * np.median(values(erased, "minimal_set", f"erased:{name}")) for name in RANKINGS}
    assert f"must erase at least {medians['optimum']:.1f} % of the words (median, exact)" in told
    assert f"attention takes {medians['attention']:.1f} %, a random order {medians['random']:.1f} %." in told
    assert f"as short as possible in {share(erased, 'minimal_set', 'optimal:attention')} of the texts" in told
    excess = erased.finding("minimal_set", "attention", "too_many")
    assert excess is not None
    assert f"takes {excess.mean:.1f} words more than needed on average" in told
    assert f"(95 % interval {interval(excess.low, excess.high, 2)}, n = {excess.n})" in told


def test_texts_that_need_everything_or_more_are_counted(erased: Record) -> None:
    record = replaced(erased, "erased:optimum", [0.5, 1.0, 1.0, 1.0] + [0.25] * 6)
    record = replaced(record, "never:optimum", [0.0] * 3 + [1.0] + [0.0] * 6)
    told = shortest(record)
    assert told is not None
    assert "In 3 of 10 texts nothing short of all words does, in 1 not even that." in told
    record = replaced(replaced(erased, "erased:optimum", [0.5] * 9), "never:optimum", [0.0] * 9)
    assert "nothing short" not in shortest(record)


def test_the_table_of_rankings_holds_the_numbers_of_the_record(erased: Record) -> None:
    grid = ranking_rows(erased)
    means = {name: values(erased, "minimal_set", f"erased:{name}").mean() for name in RANKINGS}
    names = sorted(RANKINGS, key=means.__getitem__)
    assert names[0] == "optimum"
    assert [row[0] for row in grid.rows] == [RANKINGS[name] for name in names]
    sizes = set()
    for name, row in zip(names, grid.rows, strict=True):
        found = values(erased, "minimal_set", f"erased:{name}")
        never = values(erased, "minimal_set", f"never:{name}")
        sizes.add(len(found))
        assert row[1:3] == (f"{100 * np.median(found):.1f} %", f"{100 * found.mean():.1f} %")
        assert row[3] == f"{int(never.sum())} of {len(never)}"
        if name == "optimum":
            assert row[4:] == ("–", "–", "–")
            continue
        excess = erased.finding("minimal_set", name, "too_many")
        assert excess is not None
        assert row[4:6] == (number(excess.mean, 2), interval(excess.low, excess.high, 2))
        assert row[6] == share(erased, "minimal_set", f"optimal:{name}")
    assert len(sizes) == 1  # all of the same texts


def never_flipping(record: Record, name: str, but: int = 1) -> Record:
    """The record with a ranking that changes no decision but this many, each of those after one word of a hundred."""
    mine = record.audit_rows("minimal_set")
    known = np.flatnonzero(np.isfinite(mine[f"erased:{name}"].to_numpy()))
    lost = np.full(mine.num_rows, np.nan)
    lost[known] = 1.0
    lost[known[:but]] = 0.0
    columns = {"erased": np.where(lost == 0, 0.01, lost), "never": lost}
    for measure, numbers in columns.items():
        record = replaced(record, f"{measure}:{name}", numbers.tolist())
        told = {"mean": float(np.nanmean(numbers)), "n": len(known)}
        record = changed(record, "minimal_set", name, measure, **told)
    return record


@pytest.mark.parametrize("name", ["attention", "product", "random"])
def test_a_ranking_that_never_flips_is_last_wherever_rankings_stand(erased: Record, name: str) -> None:
    record = never_flipping(erased, name)
    total = len(values(record, "minimal_set", f"never:{name}"))
    title, lost = RANKINGS[name], f"{total - 1} of {total}"
    assert ranking_rows(record).rows[-1][0] == title
    assert ranking_rows(record).rows[-1][3] == lost
    figure = figure_of(record, "minimal_set")
    assert figure is not None
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", svg(figure))
    named = [each for each in drawn if each in RANKINGS.values()]
    assert (named[0], named[-1]) == (RANKINGS["optimum"], title)
    labels = [each for each in drawn if re.match(r"\d+\.\d %", each)]
    assert len(labels) == len(named) and labels[-1] == f"100.0 %, never {100 * (total - 1) / total:.0f} %"
    told = f"and {title} {100 * (total - 0.99) / total:.1f} % (never in {100 * (total - 1) / total:.1f} %)."
    assert told in shortest(record)
    assert told.replace(" ", "") in re.sub(r"\s", "", str(Result(record)))  # a terminal breaks lines
    page = section_of(render(record), "How many words must go before the decision changes?")
    rows = [words(row) for row in Page(page[page.index("<table") : page.index("</table>")] + "</table>").texts("tr")]
    assert rows[1].startswith(RANKINGS["optimum"])
    assert rows[-1].startswith(title) and lost in rows[-1]


def test_the_smallest_set_is_never_above_a_ranking_in_any_summary_of_texts(erased: Record) -> None:
    for but in (0, 1, 30):
        found = {name: each.erased for name, each in shares(never_flipping(erased, "attention", but)).items()}
        for name, column in found.items():
            assert len(column) == len(found["optimum"])
            if name != "attention":  # which is made up here
                assert (found["optimum"] <= column).all()
        assert np.median(found["optimum"]) <= np.median(found["gradient"])


def older(record: Record) -> Record:
    """The record as it was written before texts that a ranking never changes were counted."""
    table = record.instances
    findings = [f for f in record.summary["findings"] if f["measure"] not in ("erased", "erased_mass", "too_many")]
    names = {"erased": "fraction", "erased_mass": "mass"}
    for name in RANKINGS:
        never = np.array(table[f"never:{name}"].to_pylist(), dtype=float)
        for measure, before in names.items():
            place = table.column_names.index(f"{measure}:{name}")
            kept = np.where(never == 1, np.nan, np.array(table[f"{measure}:{name}"].to_pylist(), dtype=float))
            table = table.set_column(place, f"{before}:{name}", [kept])
            if np.isfinite(kept).any():
                mean = float(np.nanmean(kept))
                about = {"audit": "minimal_set", "subject": name, "measure": before, "group": "all", "kind": "exact"}
                ends = {"low": mean, "high": mean, "std": 0.0, "n": int(np.isfinite(kept).sum())}
                findings.append(about | {"mean": mean} | ends)
    table = table.drop_columns([each for each in table.column_names if each.startswith("too_many")])
    return remade(record, instances=table, summary=record.summary | {"findings": findings})


def test_older_records_are_told_of_all_texts_too(erased: Record) -> None:
    before = older(erased)
    for measure in ("erased", "erased_mass"):
        ours, theirs = shares(erased, measure), shares(before, measure)
        assert list(ours) == list(theirs)
        for name in ours:
            np.testing.assert_allclose(ours[name].erased, theirs[name].erased, rtol=1e-12)
    for now, then in zip(ranking_rows(erased).rows, ranking_rows(before).rows, strict=True):
        assert then[:4] == now[:4]
        assert then[4:] == ("–", "–", now[6])
    told, whole = shortest(before), shortest(erased)
    assert whole.startswith(told)
    page = render(before)
    assert "never changes the decision" in page
    grid = next(each for each in sections(before) if each.name == "minimal_set").grid
    assert not any({"fraction", "mass", "excess"} & {*row} for row in grid.rows)
    assert {"fraction", "mass"} <= {each.measure for each in before.findings}


def test_wins_are_those_of_the_row_over_the_column(erased: Record) -> None:
    (square,) = matrices(erased, "minimal_set")
    names = {title: name for name, title in RANKINGS.items()}
    assert square.names == tuple(RANKINGS.values())[1:]
    for one, row in zip(square.names, square.rows, strict=True):
        for other, cell in zip(square.names, row, strict=True):
            if one != other:
                wins = values(erased, "minimal_set", f"wins:{names[one]}~{names[other]}").mean()
                assert cell.text == number(wins, 2)
                assert cell.level == round(8 * wins)
            else:
                assert cell.text == ""


def test_flip_tables_hold_the_shares_of_the_record_and_sum_to_all(erased: Record) -> None:
    tables = flip_tables(erased, "single_weight")
    assert [table.top for table in tables] == [
        "the most attended word",
        "the word of the highest gradient",
        "the word of the highest gradient × attention",
    ]
    for subject, table in zip(SUBJECTS, tables, strict=True):
        cells = (table.both, table.top_only, table.other_only, table.neither)
        kinds = ("both", "top_only", "other_only", "neither")
        assert cells == tuple(share(erased, "single_weight", f"{kind}:{subject}") for kind in kinds)
        assert sum(float(cell.removesuffix(" %")) for cell in cells) == pytest.approx(100, abs=0.2)
        assert table.n == str(len(values(erased, "single_weight", f"both:{subject}")))


def test_the_answer_on_single_weights_adds_up_the_table(erased: Record) -> None:
    both, top, other = (values(erased, "single_weight", f"{n}:attention") for n in ("both", "top_only", "other_only"))
    told = SingleWeight().conclude(erased).answer
    assert told is not None
    assert f"most attended word alone changed the decision in {100 * (both + top).mean():.1f} % of texts" in told
    assert f"a random other word in {100 * (both + other).mean():.1f} %" in told
    assert f"only the first did in {100 * top.mean():.1f} %" in told
    assert f"In {share(erased, 'single_weight', 'smaller:attention')} of texts" in told


def test_the_page_shows_tables_square_and_figures_of_erased_attention(erased: Record, text: str) -> None:
    single = section_of(text, "Does the most attended word matter more than another?")
    sets = section_of(text, "How many words must go before the decision changes?")
    assert single.count("<svg") == sets.count("<svg") == 2
    parts = re.findall(r'<table class="plain flips">.*?</table>', single, flags=re.DOTALL)
    for part, table in zip(parts, flip_tables(erased, "single_weight"), strict=True):
        cells = [words(cell).replace("\u00a0", " ") for cell in Page(part).texts("td")]
        assert cells == [
            "",
            f"{table.both} both",
            f"{table.top_only} only this one",
            f"{table.other_only} only the other",
            f"{table.neither} neither",
        ]
        assert f"{table.top}, or {table.other}?" in words(Page(part).texts("caption")[0])
    table = sets[sets.index("<table") : sets.index("</table>")]
    shown = [words(row) for row in Page(f"{table}</table>").texts("tr")]
    for row in ranking_rows(erased).rows:
        assert " ".join(row) in shown
    assert '<figure class="matrix">' in sets
    assert "of every two rankings" in sets


def test_the_words_of_a_smallest_set_are_marked_and_an_empty_one_is_told(erased: Record) -> None:
    rows = {row["example"]: row for row in erased.examples.to_pylist()}
    shown = [example for _, examples in groups(erased) for example in examples]
    empty = 0
    for example in shown:
        strip = next(strip for strip in example.lines if strip.name.startswith("smallest set"))
        assert strip.remark == "exact"
        row = rows[example.number]
        spans = zip(row["starts"], row["ends"], row["smallest_set"], strict=True)
        expected = [row["text"][start:end] for start, end, flag in spans if flag]
        html = line(example, strip)
        marked = Page(f"<p>{html}</p>").texts("mark")
        if not expected:
            empty += 1
            assert "none: whatever is erased, the decision stays" in html
        elif "more tokens" not in html:
            assert marked == expected
    assert 0 < empty < len(shown)


def test_a_cut_text_tells_how_many_words_of_the_set_it_hides(erased: Record) -> None:
    row = max(erased.examples.to_pylist(), key=lambda row: len(row["starts"]))
    hidden = replace(
        erased, examples=erased.examples.filter([e == row["example"] for e in erased.examples["example"].to_pylist()])
    )
    (_, (example, *_)), *_ = groups(hidden)
    strip = next(strip for strip in example.lines if strip.name.startswith("smallest set"))
    html = line(example, strip)
    marked = len(Page(f"<p>{html}</p>").texts("mark"))
    told = sum(int(each) for each in re.findall(r"(\d+) of them marked", html))
    assert marked + told == sum(row["smallest_set"])
    assert "the strongest among them" not in html


def test_without_the_audit_there_is_no_row_for_a_smallest_set(record: Record) -> None:
    for _, examples in groups(record):
        assert not any(strip.name.startswith("smallest set") for example in examples for strip in example.lines)


@pytest.mark.parametrize("items", ["words", "sentences"])
def test_attended_items_are_called_what_they_are(erased: Record, worded: Callable[..., Record], items: str) -> None:
    record = worded(erased, items=items)
    one, other = items.removesuffix("s"), {"words": "sentence", "sentences": "word"}[items]
    told = " ".join(said.answer for said in record.conclusions.values())
    assert f"among the {items}" in told
    assert f"the most attended {one} alone" in told
    assert f"% of the {items} (median, exact)" in told
    assert other not in told
    found = {section.name: section for section in sections(record)}
    assert found["permutation"].title == f"Does it matter which {one} gets the attention?"
    assert found["minimal_set"].title == f"How many {items} must go before the decision changes?"
    for name in ("permutation", "single_weight", "minimal_set"):
        assert other not in found[name].title + found[name].reading
        assert one in found[name].reading
    for name in ("single_weight", "single_weight_smaller", "minimal_set"):
        assert one in captions(record)[name]
        assert other not in captions(record)[name]
    assert f"no {one} in common" in glossary(record)["JSD"]
    assert f"the {one} on top" in glossary(record)["ΔJS"]
    assert f"fewest {items}" in glossary(record)["smallest set"]
    assert all(
        f"{one} " in table.top and other not in table.top + table.other
        for table in flip_tables(record, "single_weight")[1:]
    )
    assert ranking_rows(record).columns[1] == f"{items} erased, median"
    assert "{" not in words("".join(Page(render(record)).texts("main"))).split("The whole plan")[0].split("Examples")[0]


def test_the_facts_tell_what_attention_is_over(erased: Record, worded: Callable[..., Record]) -> None:
    shapes = {"flat": "all words", "hierarchical": "then over sentences", "paired": "given the question or hypothesis"}
    for shape, words_ in shapes.items():
        assert words_ in dict(facts(worded(erased, shape=shape)))["Attention"]
    assert "Attention" not in dict(facts(worded(erased, shape="")))


def test_heatmaps_of_sentences_are_explained(erased: Record, record: Record, worded: Callable[..., Record]) -> None:
    assert [note.split(" is ")[0] for note in notes(record)] == ["Trust"]
    assert notes(erased)[1:] == ["The smallest set holds the fewest words whose erasure changes the decision."]
    _, over, smallest = notes(worded(erased))
    assert over.startswith("Attention is over sentences here")
    assert "fewest sentences" in smallest
    assert over in words("".join(Page(render(worded(erased))).texts("main")))


@pytest.mark.parametrize("audit", ["single_weight", "minimal_set"])
def test_texts_of_one_word_alone_give_a_page_without_numbers(erased: Record, audit: str) -> None:
    findings = [row for row in erased.summary["findings"] if row["audit"] != audit]
    kept = erased.instances.filter([each != audit for each in erased.instances["audit"].to_pylist()])
    empty = remade(erased, summary=erased.summary | {"findings": findings}, instances=kept)
    told = {section.name: section for section in sections(empty)}[audit]
    assert told.answer == "No text gave a number."
    assert told.flips == ()
    assert told.matrices == ()
    assert "No text gave a number." in render(empty)
