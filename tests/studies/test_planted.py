"""The study of planted corpora: candidates are chosen by dev texts alone, and an interrupted run goes on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.data.examples import Corpus
from assay.data.planted import PLANTED
from assay.data.text import TextOptions
from assay.errors import AssayError
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from studies.planted import cells, subjects
from studies.planted.__main__ import SEEDS, chosen, kept, make
from studies.planted.cells import Audited, Taught, first
from studies.planted.choosing import LEARNT, choice, missing, ready, tried
from studies.planted.curriculum import LESSONS
from studies.planted.lessons import APART, Blank, Lesson
from studies.planted.subjects import CLOSED, SUBJECTS, Subject
from studies.planted.tables import KINDS, Column, advice, brief, cell, page

REAL = dict(PLANTED)
EXPLAINERS = ("gradient", "leave_one_out", "rollout", "random")
TWO = (11, 12)
Results = dict[str, Any]


@cache
def short(name: str, seed: int) -> Corpus:
    whole = REAL[name](seed)
    return replace(whole, train=whole.train[:240], dev=whole.dev[:48], test=whole.test[:24])


def tiny(epochs: int, rate: float) -> Lesson:
    training = Training(epochs=epochs, patience=epochs, batch_size=16, learning_rate=rate)
    recipe = Recipe(Architecture(encoder="average", embedding=8, hidden=4), TextOptions(), training)
    return Lesson(recipe, vary=(Blank(2),))


CANDIDATES = {"idle": tiny(1, 1e-6), "awake": tiny(4, 0.05)}
CLOSED_ONE = Subject(CLOSED, ("planted:keyword",), CANDIDATES, EXPLAINERS, ("truth",))
ALONE_ONE = Subject("cnn", ("planted:majority",), {"usual": CANDIDATES["awake"]}, EXPLAINERS)
SMALL = {subject.name: subject for subject in (CLOSED_ONE, ALONE_ONE)}


def shrunk(patch: pytest.MonkeyPatch) -> None:
    """Two small subjects on small corpora in the place of the study's own."""
    patch.setattr(subjects, "SUBJECTS", SMALL)
    patch.setattr(subjects, "USUAL_TEXTS", 6)
    for name in ("planted:keyword", "planted:majority"):
        patch.setitem(PLANTED, name, partial(short, name))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrunk(monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All cells of the small study."""
    place = tmp_path_factory.mktemp("planted")
    with pytest.MonkeyPatch.context() as patch:
        shrunk(patch)
        make(tuple(SMALL.values()), TWO, place / "results.json", place / "runs")
    return kept(place / "results.json")


def judged(**dev: tuple[float, float]) -> Results:
    """Finished lessons of candidates with these accuracies on dev texts, one for each seed."""
    return {
        Taught(CLOSED_ONE.name, name, seed).name: {"dev": right}
        for name, both in dev.items()
        for seed, right in zip(TWO, both, strict=True)
    }


def names(cells: Iterable[Taught | Audited]) -> list[str]:
    return [each.name.removeprefix(f"{CLOSED_ONE.name}/") for each in cells]


def test_the_candidate_with_the_highest_mean_is_chosen_and_the_first_of_several() -> None:
    assert choice(CLOSED_ONE, TWO, judged(idle=(0.5, 0.9), awake=(0.6, 0.9))) == "awake"
    assert choice(CLOSED_ONE, TWO, judged(idle=(0.9, 0.6), awake=(0.5, 0.9))) == "idle"
    assert choice(CLOSED_ONE, TWO, judged(idle=(0.5, 0.75), awake=(0.75, 0.5))) == "idle"


def test_candidates_after_one_without_a_mistake_are_not_taught_and_half_a_candidate_is_no_choice() -> None:
    assert names(missing(CLOSED_ONE, TWO, {})) == ["idle/11", "idle/12"]
    assert (
        missing(CLOSED_ONE, TWO, judged(idle=(1, 1))) == [] and choice(CLOSED_ONE, TWO, judged(idle=(1, 1))) == "idle"
    )
    half = judged(idle=(0.9, 1), awake=(1, 1))
    del half[f"{CLOSED_ONE.name}/awake/12"]
    assert names(missing(CLOSED_ONE, TWO, half)) == ["awake/12"] and choice(CLOSED_ONE, TWO, half) is None
    together = replace(CLOSED_ONE, at_once=True)
    assert names(missing(together, TWO, {})) == ["idle/11", "idle/12", "awake/11", "awake/12"]


def poisoned(name: str, seed: int) -> Corpus:
    """The corpus with wrong labels in its test, and other words marked."""
    whole = short(name, seed)
    wrong = (replace(each, label=1 - each.label, evidence=((0, 2),)) for each in whole.test)
    return replace(whole, test=tuple(wrong))


def test_what_is_chosen_does_not_hang_on_the_test(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLANTED, "planted:keyword", partial(poisoned, "planted:keyword"))
    make((CLOSED_ONE,), TWO, tmp_path / "results.json", tmp_path / "runs")
    other = kept(tmp_path / "results.json")
    assert tried(CLOSED_ONE, TWO, other) == tried(CLOSED_ONE, TWO, finished)
    best = choice(CLOSED_ONE, TWO, finished)
    assert choice(CLOSED_ONE, TWO, other) == best == "awake"
    audited = [Audited(CLOSED_ONE.name, best, seed, "planted:keyword").name for seed in TWO]
    assert [other[name]["test"] for name in audited] == pytest.approx([1 - finished[name]["test"] for name in audited])
    assert all(other[name]["measures"] != finished[name]["measures"] for name in audited)


def test_a_lesson_is_taught_without_the_test_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Corpus] = []
    real = cells.learnt
    monkeypatch.setattr(cells, "learnt", lambda corpus, *rest: seen.append(corpus) or real(corpus, *rest))
    Taught(CLOSED_ONE.name, "idle", 11).made(tmp_path, "cpu")
    (corpus,), tested = seen, {each.text for each in first("planted:keyword", 11).test}
    assert corpus.test == () and tested and not tested & {each.text for each in (*corpus.train, *corpus.dev)}


def test_an_interrupted_run_goes_on_with_what_is_missing(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = {kind: kind.made for kind in (Taught, Audited)}, []

    def killed(self: Audited, runs: Path, device: str) -> Results:
        if made:
            raise KeyboardInterrupt
        made.append(self.name)
        return real[Audited](self, runs, device)

    asked = ((CLOSED_ONE,), TWO, tmp_path / "results.json", tmp_path / "runs")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Audited, "made", killed)
        make(*asked)
    before = kept(tmp_path / "results.json")
    assert len(before) == 5 and made[0] in before  # two candidates with two seeds, and one audit
    with monkeypatch.context() as patch:
        patch.setattr(Taught, "made", lambda *given: pytest.fail("a finished lesson is taught again"))
        make(*asked)
    after = kept(tmp_path / "results.json")
    assert len(after) == 6 and before.items() <= after.items()
    assert all(after[name].get("measures") == finished[name].get("measures") for name in after)


CLOSED_PART, CHOICES = "### Where other routes are closed", "### What was chosen"


def rows(text: str, part: str = CLOSED_PART) -> dict[str, list[str]]:
    """The cells of a part of the page by the first of each row."""
    lines = text.partition(part)[2].partition("\n### ")[0].splitlines()
    split = ([each.strip() for each in line.strip("|").split("|")] for line in lines if line[:1] == "|")
    return {line[0]: line[1:] for line in split}


def test_the_page_has_every_subject_and_every_explainer_that_fits(finished: Results) -> None:
    text = page(tuple(SMALL.values()), TWO, finished)
    found = rows(text)
    assert {"gradient", "leave_one_out", "random", "*accuracy, dev*", "*accuracy, test*"} < set(found)
    assert "rollout" not in found and "No model here is one for: `rollout`." in text
    assert "### The corpus as it is: majority" in text and "| comprehensiveness | CNN † |" in text
    assert found["*seeds that learnt*"] == ["2 of 2"] and found["*texts of each seed*"] == ["6"]
    choices = rows(text, CHOICES)
    assert set(SMALL) < set(choices)
    idle, awake = tried(CLOSED_ONE, TWO, finished).values()
    assert choices[CLOSED_ONE.name] == [f"idle: {idle:.4f}, **awake: {awake:.4f}**"] and idle < awake


def test_a_number_is_the_mean_over_seeds_with_the_lowest_and_the_highest(finished: Results) -> None:
    values = [finished[f"{CLOSED_ONE.name}/awake/{seed}/keyword"]["measures"]["truth.auprc"]["random"] for seed in TWO]
    told = rows(page((CLOSED_ONE,), TWO, finished))["random"][0]
    low, high = np.sort(values)
    assert low < high and told == f"{np.mean(values):.3f} [{low:.2f}, {high:.2f}]"
    assert rows(advice((CLOSED_ONE,), TWO, finished), "Made by")["random"] == [told]
    assert cell([0.5, 0.5], "0.500") == "**0.500**" and cell([]) == "–"


def test_a_model_that_has_not_learnt_is_marked_and_says_nothing(finished: Results) -> None:
    def with_dev(right: float, *seeds: int) -> Results:
        dull = {f"{CLOSED_ONE.name}/awake/{seed}" for seed in seeds}
        return {
            name: result | {"each": {"planted:keyword": right}} if name in dull else result
            for name, result in finished.items()
        }

    one = rows(page((CLOSED_ONE,), TWO, with_dev(LEARNT - 0.01, 11)))
    only = finished[f"{CLOSED_ONE.name}/awake/12/keyword"]["measures"]["truth.auprc"]["random"]
    assert one["random"] == [f"{only:.3f}"] and one["*seeds that learnt*"] == ["1 of 2"]
    none = page((CLOSED_ONE,), TWO, with_dev(LEARNT - 0.01, *TWO))
    assert "| AUPRC | keyword † |" in none and "random" not in rows(none)
    unaudited = {name: result for name, result in with_dev(LEARNT - 0.01, 11).items() if not name.endswith("/keyword")}
    assert [cell.name for cell in ready(CLOSED_ONE, TWO, unaudited)] == [f"{CLOSED_ONE.name}/awake/12/keyword"]


def test_a_model_that_has_learnt_and_is_not_audited_is_marked(finished: Results) -> None:
    lacking = {name: result for name, result in finished.items() if name != f"{CLOSED_ONE.name}/awake/12/keyword"}
    text = page((CLOSED_ONE,), TWO, lacking)
    only = finished[f"{CLOSED_ONE.name}/awake/11/keyword"]["measures"]["truth.auprc"]["random"]
    assert "| AUPRC | keyword ‡ |" in text and rows(text)["random"] == [f"{only:.3f}"]
    assert rows(text)["*seeds that learnt*"] == ["2 of 2"]


def test_the_short_table_has_the_lowest_and_the_highest_corpus_of_a_kind() -> None:
    def column(head: str, *found: float) -> Column:
        audits = [{"measures": {"truth.auprc": {"lrp": value}}} for value in found]
        return Column(head, head, [{"each": {head: 1.0}}] * len(audits), audits)

    lines = brief([column("keyword", 0.9, 1.0), column("shortcut", 0.5, 0.6), column("facts2", 0.3)])
    assert lines[2:] == [
        "| AUPRC | one word | whole sentences |",
        "| --- | --- | --- |",
        "| lrp | 0.55 to 0.95 | 0.30 |",
    ]
    assert {head for heads in KINDS.values() for head in heads} == {subjects.title(name) for name in LESSONS}


def test_what_is_not_finished_is_said(finished: Results) -> None:
    begun = {name: result for name, result in finished.items() if name.startswith(CLOSED_ONE.name) and "each" in result}
    text = page(tuple(SMALL.values()), TWO, begun)
    assert "not finished" in rows(text, CHOICES)[ALONE_ONE.name][0] and "leave_one_out" not in text
    assert page(tuple(SMALL.values()), TWO, {}) == "Nothing has been run yet.\n"


def test_every_corpus_is_taught_and_seeds_share_no_corpus() -> None:
    assert {name for subject in SUBJECTS.values() for name in subject.corpora if subject.learns == CLOSED} == set(
        LESSONS
    )
    every = [lesson for subject in SUBJECTS.values() for lesson in subject.candidates.values()]
    assert max(lesson.seeds for lesson in every) <= APART
    assert max(lesson.seeds for lesson in LESSONS.values()) <= min(SEEDS) * APART  # none of those of seed 0
    texts = [{each.text for each in CANDIDATES["idle"].corpus("planted:keyword", seed).dev} for seed in (0, *TWO)]
    assert texts[0] == {each.text for each in short("planted:keyword", 0).dev}
    assert len(set.union(*texts)) == sum(map(len, texts))


def test_subjects_are_asked_for_by_how_their_names_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("") == list(SMALL.values()) and chosen("cnn") == [ALONE_ONE] == chosen("cnn/majority")
    with pytest.raises(AssayError, match="No subject is called 'cn'; there are: lessons/keyword, cnn/majority"):
        chosen("cn")
