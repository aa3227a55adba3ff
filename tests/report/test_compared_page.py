from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from assay.audits import AUDITS
from assay.grading.grade import verdicts
from assay.grading.leaderboard import leaderboard
from assay.records import Record
from assay.report.audit import render
from assay.report.outcome import outcome
from assay.report.sections import sections
from assay.report.tables import measure_rows
from assay.stories import story_of
from tests.report.parsed import Page, words
from tests.report.synthetic import remade
from tests.report.trained import ADVERSARIES, MODELS, SEEDS, VARIANTS


@pytest.fixture(scope="module")
def models(make: Callable[..., Record]) -> Record:
    return make(count=60, audits=("deciding", *MODELS))


@pytest.fixture(scope="module")
def shown(models: Record) -> str:
    return render(models)


@pytest.mark.parametrize("audit", MODELS)
def test_every_measure_has_a_name_of_its_own_audit(audit: str, models: Record) -> None:
    measures, story = {f.measure for f in models.findings if f.audit == audit}, models.stories[audit]
    for measure in measures:
        assert measure.partition("@")[0] in [each.name for each in story.measures]
        assert "over chance" not in story.measure(measure).label


def test_the_same_measure_has_another_name_in_another_audit() -> None:
    labels = [story_of(AUDITS[audit]).measure("jsd").label for audit in ("adversary", "trained_adversary")]
    assert labels[0] != labels[1]
    at = story_of(AUDITS["word_level"]).measure("jsd@0.05")
    assert at.label == "furthest attention (JSD) where the output may move by 0.05"


def test_tables_of_many_models_do_not_grow_with_the_classes(make: Callable[..., Record]) -> None:
    for classes in (("a", "b"), ("a", "b", "c")):
        record = make(count=30, classes=classes, audits=MODELS)
        assert len(measure_rows(record, "trained_adversary").rows) == 4 * (len(ADVERSARIES) + len(SEEDS))
        assert "predicted class" not in measure_rows(record, "trained_adversary").columns
        assert "predicted class" in measure_rows(record, "dispersion").columns
        assert len(measure_rows(record, "dispersion").rows) == 11 * (1 + len(classes))


def test_the_classes_that_are_left_out_are_mentioned_only_where_they_are(models: Record) -> None:
    told = {section.name: section.whole for section in sections(models)}
    comparing = [name for name, story in models.stories.items() if story.subjects == "model"]
    assert len(comparing) == 7
    assert all(told[name] for name in comparing)
    whole = [row for row in models.summary["findings"] if row["audit"] not in comparing or row["group"] == "all"]
    alone = remade(models, summary=models.summary | {"findings": whole})
    assert not any(section.whole for section in sections(alone))


def test_models_are_neither_graded_nor_ranked(models: Record, make: Callable[..., Record]) -> None:
    plain = make(count=60, audits=("deciding",))
    assert outcome(models).headline == outcome(plain).headline
    assert verdicts(models) == verdicts(plain)
    assert leaderboard(models) == leaderboard(plain)
    only = make(count=30, audits=MODELS)
    assert all(verdict.effect is None for verdict in verdicts(only))


def test_a_trend_is_of_all_models(models: Record) -> None:
    rows = [row for row in measure_rows(models, "sparsity").rows if row[1].startswith("τ of λ or α")]
    assert [row[0] for row in rows] == ["the whole sweep"] * 3


def test_a_page_shows_every_audit_with_answer_and_figures(models: Record, shown: str) -> None:
    page = Page(shown)
    answers = [words(text) for text in page.texts("p", "answer")]
    for section in sections(models):
        assert words(section.answer) in answers
        assert section.title in page.texts("h3")
    captions = [words(text) for text in page.texts("figcaption")]
    stories = (models.stories[audit] for audit in MODELS)
    every = {drawing.caption for story in stories for drawing in story.drawings}
    assert [captions.count(words(caption)) for caption in every] == [1] * len(every)
    assert len(shown.encode()) < 500_000


def test_variants_stand_in_a_short_table(shown: str, models: Record) -> None:
    rows = [words(row) for row in Page(shown).texts("tr")]
    gain = models.finding("word_level", "tying", "median_tvd_gain")
    assert gain is not None
    assert any(row.startswith("tying: states drawn to words") and f"{gain.mean:.2f} (" in row for row in rows)
    assert sum(row.startswith(("base ", *(f"{name}" for name in VARIANTS))) for row in rows) >= len(VARIANTS)


def test_deceiving_attention_is_shown_in_the_examples(shown: str) -> None:
    assert "deceiving attention (another model)" in Page(shown).texts("div", "name")
    assert "Deceiving attention is that of another model" in shown


def test_a_page_without_these_audits_knows_nothing_of_them(page: str) -> None:
    told = page.partition("</style>")[2].lower()
    for word in (
        "four tests",
        "other seeds",
        "normalised entropy",
        "sparsegen",
        "deceiving",
        "trained once",
        "adversaries",
    ):
        assert word not in told


@pytest.mark.parametrize("audit", MODELS)
def test_each_audit_of_models_may_stand_alone(audit: str, make: Callable[..., Record]) -> None:
    record = make(count=8, audits=(audit,), classes=("a", "b", "c"), explainers=("attention",))
    assert len(Page(render(record)).texts("p", "answer")) == 1


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_any_finding_may_be_missing_or_no_number(share: float, models: Record) -> None:
    draw = np.random.default_rng(int(10 * share))
    nothing = {"mean": math.nan, "low": math.nan, "high": math.nan}
    for _ in range(20):
        kept = [row for row in models.summary["findings"] if draw.random() < share]
        rows = [row | nothing if draw.random() < 0.3 else row for row in kept]
        record = remade(models, summary=models.summary | {"findings": rows})
        for name in MODELS:
            answer = record.summary["audits"][name]["conclusion"].get("answer")
            assert not answer or (answer.endswith(".") and "nan" not in answer.split())
    Page(render(record))


def test_what_an_audit_remarks_stands_below_its_answer_and_is_escaped(make: Callable[..., Record]) -> None:
    record = make(count=60, audits=("deception",))
    assert "to be avoided:" not in render(record)
    record.summary["audits"]["deception"]["remark"] = "The words to be avoided: <b>fine</b>, dull."
    assert '<p class="about">The words to be avoided: &lt;b&gt;fine&lt;/b&gt;, dull.</p>' in render(record)
