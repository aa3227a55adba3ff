"""From finished trials to tables: means, intervals and tests against scipy, and nothing left out in silence."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from assay.audits import AUDITS
from assay.lookup import WORDS
from assay.metrics import intervals as shares
from assay.records import Finding, finding_rows
from assay.stories import story_of
from assay.study.plans import Question, StudyPlan
from assay.study.questions import Finished, answered, finished, questions
from assay.study.results import Answer, Cell, Difference
from assay.study.trials import Folder, Kind, Trial
from tests.report.synthetic import AUDITS as SYNTHETIC
from tests.report.synthetic import synthetic_record
from tests.study.invented import Numbers, keep, plan, record

TRUTH = Question("truth", "auprc", "Found?")
LEVELS = {"attention": 0.8, "gradient": 0.6, "random": 0.3}
Make = Callable[[StudyPlan, Callable[[Trial], Numbers]], Folder]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Puts invented numbers into a new folder as the results of all trials of a plan."""
    numbered = itertools.count()

    def made(planned: StudyPlan, numbers: Callable[[Trial], Numbers]) -> Folder:
        place = tmp_path / str(next(numbered))
        for trial in planned.trials:
            keep(Folder(place / "study"), trial, record(numbers(trial)), place / "scratch")
        return Folder(place / "study")

    return made


def drawn(trial: Trial, texts: int = 30, spread: float = 0.1) -> Numbers:
    """Numbers of each text that depend on the trial alone, around the level of each subject."""
    draw = np.random.default_rng(zlib.crc32(trial.title.encode()))
    columns = {f"auprc:{name}": draw.normal(level, spread, texts) for name, level in LEVELS.items()}
    return {"truth": columns}


def answer(planned: StudyPlan, folder: Folder, question: Question = TRUTH) -> Answer:
    return answered(question, planned, finished(planned.trials, folder))


def cell(answered: Answer, subject: str, column: int = 0) -> Cell:
    found = next(row for row in answered.rows if row.subject == subject).cells[column]
    assert found is not None
    return found


def difference(answered: Answer, subject: str, column: int = 0) -> Difference:
    found = cell(answered, subject, column).difference
    assert found is not None
    return found


def means(planned: StudyPlan, subject: str, corpus: str, model: str) -> list[float]:
    """The mean of each seed, straight from what was drawn."""
    trials = [each for each in planned.trials if (each.corpus.title, each.kind.name) == (corpus, model)]
    return [float(drawn(trial)["truth"][f"auprc:{subject}"].mean()) for trial in trials]


# the numbers, twice


def test_the_share_of_significant_texts_is_a_measure_of_its_own(tmp_path: Path) -> None:
    planned = plan(corpora=["planted:keyword"], models={"one": {}}, audits={"audits": ["agreement"]})
    folder, known = Folder(tmp_path / "study"), [0.2, 0.5, 0.8]
    for trial, share in zip(planned.trials, known, strict=True):
        tau = Finding("agreement", "attention~random", "tau", "all", 0.3, 0.2, 0.4, 0.1, 50, significant=share)
        keep(folder, trial, record(drawn(trial), findings=finding_rows([tau])), tmp_path / "scratch")
        found = finished([trial], folder)[trial.identity]
        assert isinstance(found, Finished)
        one = found.findings["agreement", "attention~random", "significant"]
        assert (one.mean, one.n) == (share, 50)
        low, high = shares.share(np.array([round(50 * share)]), np.array([50]))
        assert (one.low, one.high) == (low[0], high[0])
    table = answer(planned, folder, Question("agreement", "significant"))
    assert cell(table, "attention~random").mean == pytest.approx(np.mean(known))
    assert table.rises is None and table.against is None


def test_a_cell_is_the_mean_over_seeds_with_students_interval(make: Make) -> None:
    planned = plan()
    table = answer(planned, make(planned, drawn))
    assert [column.title for column in table.columns] == [
        f"{corpus} · {model}" for corpus in ("planted:keyword", "planted:negation") for model in ("one", "two")
    ]
    for row in table.rows:
        for column, found in zip(table.columns, row.cells, strict=True):
            expected = means(planned, row.subject, column.corpus, column.model)
            ends = stats.ttest_1samp(expected, 0).confidence_interval()
            assert found is not None
            assert (found.mean, found.low, found.high) == pytest.approx((np.mean(expected), ends.low, ends.high))
            assert (found.over, found.seeds, found.texts) == ("seeds", 3, 90)


def test_from_three_seeds_on_differences_are_paired_over_seeds(make: Make) -> None:
    planned = plan()
    table = answer(planned, make(planned, drawn))
    for place, column in enumerate(table.columns):
        own = means(planned, "gradient", column.corpus, column.model)
        null = means(planned, "random", column.corpus, column.model)
        expected = stats.ttest_rel(own, null)
        found = difference(table, "gradient", place)
        ends = expected.confidence_interval()
        assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, ends.low, ends.high))
        assert (found.over, found.n) == ("seeds", 3)


def test_p_values_are_adjusted_for_the_whole_table(make: Make) -> None:
    planned = plan()
    found = answer(planned, make(planned, lambda trial: drawn(trial, spread=0.5))).differences
    assert len(found) == 8  # two subjects in four columns
    ordered = sorted(found, key=lambda each: each.p)
    for rank, each in enumerate(ordered):
        expected = max(min(1.0, (8 - before) * other.p) for before, other in enumerate(ordered[: rank + 1]))
        assert each.adjusted == pytest.approx(expected)
    assert len({each.sure for each in found}) == 2


def test_with_one_seed_the_interval_is_the_trials_own_and_texts_are_paired(make: Make) -> None:
    planned = plan(seeds=[4], corpora=["planted:keyword"])
    table = answer(planned, make(planned, drawn))
    columns = drawn(planned.trials[1])["truth"]
    found, own = cell(table, "attention", 1), columns["auprc:attention"]
    reach = 2 * own.std() / np.sqrt(30)
    assert (found.low, found.high) == pytest.approx((own.mean() - reach, own.mean() + reach))
    assert (found.over, found.seeds, found.texts) == ("texts", 1, 30)
    expected = stats.ttest_rel(own, columns["auprc:random"])
    judged = difference(table, "attention", 1)
    assert (judged.p, judged.over, judged.n) == (pytest.approx(expected.pvalue), "texts", 30)


def test_with_two_seeds_texts_are_paired_by_their_number_and_counted_once(tmp_path: Path) -> None:
    planned = plan(seeds=[0, 1], corpora=["planted:keyword"], models={"one": {"encoder": "average"}})
    folder = Folder(tmp_path / "study")
    texts = {0: np.array([3, 5, 8, *range(20, 40)]), 1: np.array([*range(25, 50), 5])}  # drawn by each seed anew
    gaps: dict[int, list[float]] = {}
    for trial in planned.trials:
        numbers = drawn(trial, len(texts[trial.seed]))
        keep(folder, trial, record(numbers, texts[trial.seed]), tmp_path / "scratch")
        for example, one, two in zip(
            texts[trial.seed], numbers["truth"]["auprc:attention"], numbers["truth"]["auprc:random"], strict=True
        ):
            gaps.setdefault(int(example), []).append(float(one - two))
    table = answer(planned, folder)
    found = difference(table, "attention")
    expected = stats.ttest_1samp([np.mean(each) for each in gaps.values()], 0)
    assert (found.p, found.over, found.n) == (pytest.approx(expected.pvalue), "texts", len(gaps))
    assert found.gap == pytest.approx(np.mean([np.mean(each) for each in gaps.values()]))
    assert cell(table, "attention").over == "seeds"


def test_texts_without_a_number_are_no_pair(make: Make) -> None:
    planned = plan(seeds=[0], corpora=["planted:keyword"])

    def holed(trial: Trial) -> Numbers:
        columns = {name: column.copy() for name, column in drawn(trial)["truth"].items()}
        columns["auprc:attention"][:5] = np.nan
        columns["auprc:random"][3:9] = np.nan
        return {"truth": columns}

    table = answer(planned, make(planned, holed))
    columns = drawn(planned.trials[0])["truth"]
    expected = stats.ttest_rel(columns["auprc:attention"][9:], columns["auprc:random"][9:])
    found = difference(table, "attention")
    assert (found.p, found.n) == (pytest.approx(expected.pvalue), 21)
    assert cell(table, "attention").texts == 25


def test_a_number_of_attention_alone_is_found_without_its_name(make: Make) -> None:
    planned = plan(seeds=[0], audits={"audits": ["permutation"]})
    draw = np.random.default_rng(0)
    folder = make(
        planned, lambda trial: {"permutation": {"median_tvd": draw.beta(2, 9, 20), "median_tvd:other": np.ones(20)}}
    )
    table = answer(planned, folder, Question("permutation", "median_tvd", against="other"))
    assert [row.subject for row in table.rows] == ["attention", "other"]
    assert difference(table, "attention").gap == pytest.approx(cell(table, "attention").mean - 1)


# what is tested, and what is not


def test_where_no_subject_has_the_name_nothing_is_tested(make: Make) -> None:
    planned = plan()
    table = answer(planned, make(planned, drawn), replace(TRUTH, against="nobody"))
    assert table.against is None and table.differences == ()
    assert len(table.cells) == 12


def test_too_few_texts_are_not_tested(make: Make) -> None:
    planned = plan(seeds=[0])
    assert answer(planned, make(planned, lambda trial: drawn(trial, texts=9))).differences == ()
    assert len(answer(planned, make(planned, lambda trial: drawn(trial, texts=10))).differences) == 8


def test_what_chance_reaches_comes_last_and_is_not_tested_against_itself(make: Make) -> None:
    planned = plan()

    def with_chance(trial: Trial) -> Numbers:
        columns = drawn(trial)["truth"]
        return {"truth": {"auprc:chance": columns["auprc:random"] + 0.01, **columns}}

    folder = make(planned, with_chance)
    table = answer(planned, folder)
    assert [row.subject for row in table.rows][:2] == ["attention", "gradient"]
    tested = [row.subject for row, _, each in table.cells if each.difference is not None]
    assert set(tested) == {"attention", "gradient"}
    other = answer(planned, folder, replace(TRUTH, against="attention"))
    tested = [row.subject for row, _, each in other.cells if each.difference is not None]
    assert set(tested) == {"gradient", "random", "chance"}


def test_named_subjects_are_the_rows_found_or_not(make: Make) -> None:
    planned = plan()
    asked = replace(TRUTH, subjects=("gradient", "unheard_of"))
    table = answer(planned, make(planned, drawn), asked)
    assert [row.subject for row in table.rows] == ["gradient", "unheard_of"]
    assert table.rows[1].cells == (None,) * 4
    assert len(table.differences) == 4  # against random, which has no row


# what is missing


def test_trials_without_a_result_are_named_and_counted(tmp_path: Path) -> None:
    planned = plan(seeds=[0, 1, 2, 3])
    folder = Folder(tmp_path / "study")
    failed, never = planned.trials[0], planned.trials[1]
    for trial in planned.trials:
        if trial.corpus.title == "planted:keyword" and trial not in (failed, never):
            keep(folder, trial, record(drawn(trial)), tmp_path / "scratch")
    folder.fail(failed, "its process was killed")
    table = answer(planned, folder)
    states = {each.title: each.state for each in table.missing}
    assert states[failed.title] == "failed" and states[never.title] == "not run"
    assert set(states.values()) == {"failed", "not run"} and len(states) == 2 + 8
    counts = [(column.planned, column.done, column.failed) for column in table.columns]
    assert counts == [(4, 3, 1), (4, 3, 0), (4, 0, 0), (4, 0, 0)]
    assert [found is None for found in table.rows[0].cells] == [False, False, True, True]
    assert cell(table, "attention").seeds == 3


def test_a_study_without_any_result_is_a_table_without_rows(tmp_path: Path) -> None:
    planned = plan()
    table = answer(planned, Folder(tmp_path))
    assert table.rows == () and len(table.missing) == len(planned.trials) and table.against is None


def test_a_damaged_result_is_missing(make: Make) -> None:
    planned = plan()
    folder = make(planned, drawn)
    (folder.trial(planned.trials[0]) / "instances.parquet").write_bytes(b"nothing")
    table = answer(planned, folder)
    assert [each.title for each in table.missing] == [planned.trials[0].title]
    assert cell(table, "attention").seeds == 2


def test_why_numbers_are_not_there_is_told(tmp_path: Path) -> None:
    planned = plan(seeds=[0], models={"one": {"encoder": "average"}})
    folder, (first, second) = Folder(tmp_path / "study"), planned.trials
    keep(folder, first, record(drawn(first), left_out={"rollout": "it has no layers"}), tmp_path / "scratch")
    unfit = {"truth": {"applies": False, "why": "nothing is known to decide"}}
    keep(folder, second, record({}, audits=unfit), tmp_path / "scratch")
    table = answer(planned, folder)
    assert table.notes == (
        "planted:keyword · one: rollout is left out: it has no layers.",
        "planted:negation · one: nothing is known to decide.",
    )
    assert table.missing == ()
    other = answer(planned, folder, Question("truth", "auproc"))
    assert other.rows == () and "No finished trial has the measure auproc of truth; there are: auprc." in other.notes


# what is asked


def test_a_plan_that_names_questions_asks_these() -> None:
    asked = questions(plan(questions=[{"audit": "truth", "measure": "precision"}]))
    assert [(each.audit, each.measure) for each in asked] == [("model", "accuracy"), ("truth", "precision")]


def test_a_plan_that_names_none_asks_for_the_main_measures_of_its_audits() -> None:
    asked = questions(plan(audits={"audits": ["erasure", "agreement", "guide"]}))
    assert [(each.audit, each.measure, each.against) for each in asked[1:]] == [
        ("erasure", "comprehensiveness", "random"),
        ("erasure", "sufficiency", "random"),
        ("erasure", "flip", "random"),
        ("erasure", "morf", "random"),
        ("agreement", "tau", "random"),
        ("guide", "right", "learnt"),
    ]


def test_every_audit_has_main_measures_that_it_gives() -> None:
    known = tuple(name for name in AUDITS if name in SYNTHETIC)
    assert len(known) >= 20
    made = synthetic_record(count=12, audits=known)
    given = {(each.audit, each.measure, each.subject) for each in made.findings}
    untested = set()
    for audit in known:
        story = story_of(AUDITS[audit])
        main = [each.name for each in story.measures if each.main]
        assert main
        for measure in main:
            subjects = {subject for one, other, subject in given if (one, other) == (audit, measure)}
            if (audit, measure) != ("consistency", "sign"):  # which the made-up record lacks
                assert subjects, (audit, measure)
            untested |= {audit} if (story.against or "random") not in subjects else set()
        assert WORDS.named(story.title).count("{") == 0
    assert untested == {
        *("agreement", "permutation", "adversary", "layers", "single_weight", "consistency"),
        *("dispersion", "seed_variance"),
    }


def test_sets_of_audits_that_ask_the_same_have_columns_of_their_own(make: Make) -> None:
    sets = {
        "few": {"explainers": ["attention", "random"], "audits": ["truth"], "limit": 30},
        "many": {"explainers": ["attention", "random"], "audits": ["truth", "agreement"]},
    }
    planned = plan(audits=sets, corpora=["planted:keyword"], models={"one": {"encoder": "average"}})
    folder = make(planned, drawn)
    assert [column.title for column in answer(planned, folder).columns] == [
        "planted:keyword · one · few",
        "planted:keyword · one · many",
    ]
    alone = answer(planned, folder, Question("agreement", "tau"))
    assert [column.title for column in alone.columns] == ["planted:keyword · one"]


def test_a_finished_model_has_one_seed_whatever_the_others_have(make: Make) -> None:
    usual = plan(corpora=["planted:keyword"])
    planned = replace(usual, models=(*usual.models, Kind("ready", path="somewhere")))
    table = answer(planned, make(planned, drawn))
    assert [column.planned for column in table.columns] == [3, 3, 1]
    ready: Sequence[str] = [cell(table, name, 2).over for name in LEVELS]
    assert set(ready) == {"texts"} and cell(table, "attention", 0).over == "seeds"
    assert {difference(table, "attention", place).over for place in range(3)} == {"seeds", "texts"}


def test_how_good_the_models_are_stands_first(make: Make) -> None:
    planned = plan(seeds=[0])
    table = answer(planned, make(planned, drawn), questions(planned)[0])
    found = cell(table, "model")
    assert (found.mean, found.seeds, table.against, table.rises) == (0.8, 1, None, True)
    low, high = shares.share(np.array([24]), np.array([30]))
    assert (found.low, found.high) == (low[0], high[0])
