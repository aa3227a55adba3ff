"""Runs side by side: planted differences and none, and the page."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from scipy import stats

from assay.cli.app import show_report
from assay.errors import AssayError
from assay.grading.differences import (
    MOST,
    Comparison,
    Quantity,
    differences,
    groups,
    matched,
    numbers,
    provenance,
    seed,
)
from assay.metrics.comparisons import FEWEST, alone
from assay.records import Finding, Record, finding_rows
from assay.report.compare import document, ours, render
from assay.report.compare_words import BULLETS, caveats, headline, lacking, plain
from assay.report.compare_words import bullets as told
from assay.report.markdown import render as markdown_of
from assay.report.save import FORMS, as_json
from assay.run.reporting import report as reported
from assay.run.reporting import run_names
from tests.report.parsed import Page, words
from tests.report.synthetic import changed, remade, synthetic_record

NAMES = ("attention", "gradient", "leave_one_out", "random")
HOSTILE = '<script>alert("x")</script> | \u202eesrever\u202c & "quoted"'
DECIDES = Quantity("truth", "auprc", "AUPRC", True, "")


def markdown(comparison: Comparison) -> str:
    return markdown_of(document(comparison))


def data(comparison: Comparison) -> str:
    return as_json(document(comparison))


@pytest.fixture(scope="module")
def base() -> Record:
    """Sixty texts with known evidence, which every run below starts from."""
    return synthetic_record(count=60, explainers=NAMES, audits=("truth",))


def run(base: Record, values: dict[str, np.ndarray], trained: int | None = None, **texts: Any) -> Record:
    """A run whose explainers reach these numbers text by text; `trained` is its seed, `texts` other columns."""
    size = len(next(iter(values.values())))
    examples = base.examples.slice(0, size)
    for name, column in texts.items():
        place = examples.column_names.index(name)
        examples = examples.set_column(place, name, pa.array(column))
    shared = {"example": examples["example"], "audit": pa.array(["truth"] * size)}
    columns = {f"auprc:{name}": pa.array(column) for name, column in values.items()}
    findings = []
    for name, column in values.items():
        known = column[~np.isnan(column)]
        margin = 1.96 * known.std() / np.sqrt(len(known))
        low, high = float(known.mean() - margin), float(known.mean() + margin)
        findings.append(Finding("truth", name, "auprc", "all", float(known.mean()), low, high, 0.1, len(known)))
    summary = base.summary | {"findings": finding_rows(findings), "explainers": dict.fromkeys(values, "made up")}
    if trained is not None:
        recipe = {"architecture": {"encoder": "lstm"}, "training": {"seed": trained, "epochs": 3}}
        history = {"corpus": "made up", "data": f"hash {trained}", "recipe": recipe, "losses": [1.0 / (1 + trained)]}
        summary |= {"model": summary["model"] | {"history": history, "sha256": f"{trained:064x}"}}
        summary |= {"plan": summary["plan"] | {"seed": trained}}
    return Record(summary, pa.table(shared | columns), examples)


def other_texts(size: int, mark: str) -> list[str]:
    return [f"{mark} text number {place}" for place in range(size)]


# which runs can be paired


def test_texts_are_matched_by_text_query_and_the_name_of_the_label(base: Record) -> None:
    texts = ["a", "b", "b", "c", "d", "e"]
    queries = [None, None, None, "why", "why", None]
    values = {"attention": np.arange(6.0)}
    first = run(base, values, text=texts, query=queries, label=[0, 0, 0, 1, 1, 0])
    order = [5, 4, 3, 2, 1, 0]
    second = run(
        base,
        values,
        text=[texts[place] for place in order],
        query=[None, "how", "why", None, None, None],  # that of d is another
        label=[1, 1, 1, 0, 0, 0],  # e has another label
    )
    assert matched(first, second).tolist() == [[0, 5], [1, 3], [2, 4], [3, 2]]
    corpus = second.summary["corpus"] | {"classes": ["positive", "negative"]}
    turned = remade(second, summary=second.summary | {"corpus": corpus})
    assert matched(first, turned).tolist() == [[5, 0]]  # the same place is another class


def test_numbers_follow_the_table_of_examples(base: Record) -> None:
    values = np.random.default_rng(0).random(20)
    record = run(base, {"attention": values})
    mixed = remade(record, instances=record.instances.take(np.random.default_rng(1).permutation(20)))
    assert numbers(mixed, "truth", ["auprc:attention", "auprc:absent"])[:, 0].tolist() == values.tolist()
    assert np.isnan(numbers(mixed, "truth", ["auprc:attention", "auprc:absent"])[:, 1]).all()


def test_pairing_sees_what_two_samples_cannot(base: Record) -> None:
    draw = np.random.default_rng(5)
    hard = draw.normal(0.5, 0.3, 60)
    first = run(base, {"attention": hard + draw.normal(0.05, 0.03, 60)})
    second = run(base, {"attention": hard + draw.normal(0, 0.03, 60)})
    (same,) = differences({"a": first, "b": second}).differences
    assert (same.noise, same.shared, same.state) == ("same texts", 60, "exceeds noise")
    apart_from = run(base, {"attention": hard}, text=other_texts(60, "another"))
    (other,) = differences({"a": first, "b": apart_from}).differences
    assert (other.noise, other.shared, other.state) == ("other texts", 0, "within noise")


def test_runs_that_share_few_texts_are_two_samples(base: Record) -> None:
    values = np.random.default_rng(2).random(60)
    some = base.examples["text"].to_pylist()[:20] + other_texts(40, "new")
    (found,) = differences(
        {"a": run(base, {"attention": values}), "b": run(base, {"attention": values}, text=some)}
    ).differences
    assert (found.noise, found.shared) == ("other texts", 20)


# what exceeds noise, and what does not


def test_planted_differences_are_found_and_only_they(base: Record) -> None:
    draw = np.random.default_rng(11)
    names = [*NAMES, *(f"other {place}" for place in range(6))]
    noise = {name: (draw.normal(0.5, 0.2, 60), draw.normal(0.5, 0.2, 60)) for name in names}
    noise["gradient"] = (noise["gradient"][0] + 0.25, noise["gradient"][1])
    found = differences(
        {"a": run(base, {n: v[0] for n, v in noise.items()}), "b": run(base, {n: v[1] for n, v in noise.items()})}
    )
    assert len(found.differences) == 9  # of random scores there is none
    assert [(each.subject, each.quantity.title) for each in found.exceeding] == [("gradient", "AUPRC")]
    assert found.exceeding[0].contrast.gap == pytest.approx(0.25, abs=0.1)
    assert "gradient is better in a than in b" in plain(told(found)[0])
    assert plain(told(found)[-1]).startswith("Nothing else exceeds noise")


def test_of_a_measure_that_falls_the_lower_run_is_better(base: Record) -> None:
    record = synthetic_record(count=40, explainers=NAMES, audits=("erasure", "truth"))
    place = record.instances.column_names.index("flip:gradient")
    raised = [None if value is None else value + 3 for value in record.instances["flip:gradient"].to_pylist()]
    higher = remade(record, instances=record.instances.set_column(place, "flip:gradient", pa.array(raised)))
    found = differences({"as it was": record, "worse": higher})
    assert [(each.subject, each.quantity.title) for each in found.exceeding] == [("gradient", "flip")]
    assert "By flip, gradient is better in as it was than in worse, by 3.00" in plain(told(found)[0])


def test_the_verdict_tells_as_much_as_fits_in_few_lines(base: Record) -> None:
    audits = ("truth", "erasure", "sanity", "stability", "roar")
    record = synthetic_record(count=40, explainers=NAMES, audits=audits)
    columns = [
        np.array(values, dtype=float) + 5 if ":" in name and not name.startswith("p:") else values
        for name, values in zip(record.instances.column_names, record.instances.to_pydict().values(), strict=True)
    ]
    table = pa.table(dict(zip(record.instances.column_names, columns, strict=True)))
    found = differences({"a": record, "b": remade(record, instances=table)})
    assert len(found.exceeding) == len(found.differences) > 18
    lines = [plain(each) for each in told(found)]
    assert lines[0].startswith("By AUPRC, attention, gradient, and leave_one_out are better in b than in a")
    assert len(lines) == BULLETS + 1
    assert (
        lines[-1]
        == f"{len(found.exceeding) - 3 * BULLETS} more differences exceed noise; all stand in the table of differences."
    )


def test_the_same_run_twice_differs_in_nothing(base: Record) -> None:
    record = synthetic_record(count=60, audits=("agreement", "permutation", "adversary", "truth", "erasure"))
    found = differences({"a": record, "b": record})
    assert len(found.differences) > 20
    assert {each.contrast.p for each in found.differences} == {1.0}
    assert "None of" in headline(found)
    assert "The same model was audited in a and b." in list(map(plain, caveats(found)))


@pytest.mark.parametrize("shared", [True, False], ids=["same texts", "other texts"])
def test_a_page_of_runs_without_a_difference_rarely_names_one(base: Record, shared: bool) -> None:
    draw = np.random.default_rng(17)
    pages, false = 150, 0
    others = {} if shared else {"text": other_texts(60, "other")}
    for _ in range(pages):
        easy = draw.beta(0.8, 0.5, (60, 1))  # skewed, with many near 1, as AUPRC is
        first, second = (np.clip(easy + draw.normal(0, 0.2, (60, 6)), 0, 1) for _ in range(2))
        second = second if shared else np.clip(draw.beta(0.8, 0.5, (60, 1)) + draw.normal(0, 0.2, (60, 6)), 0, 1)
        runs = [{f"explainer {k}": side[:, k] for k in range(6)} for side in (first, second)]
        found = differences({"a": run(base, runs[0]), "b": run(base, runs[1], **others)})
        assert {each.noise for each in found.differences} == {"same texts" if shared else "other texts"}
        false += bool(found.exceeding)
    assert false <= stats.binom.ppf(0.999, pages, 0.05)


def test_too_few_texts_are_not_judged(base: Record) -> None:
    values = np.linspace(0, 1, FEWEST - 1)
    found = differences({"a": run(base, {"attention": values}), "b": run(base, {"attention": values + 1})})
    assert found.differences == ()
    assert "share nothing that could be compared" in headline(found)


# seeds


def seeded(base: Record, level: float, seeds: range, draw: np.random.Generator, spread: float) -> dict[str, Record]:
    """Runs of several seeds whose means scatter around a level by `spread`, and whose texts hardly do."""
    made = {}
    for each in seeds:
        values = level + draw.normal(0, spread) + draw.normal(0, 0.02, 20)
        made[f"{level} seed {each}"] = run(base, {"attention": values}, each)
    return made


def test_runs_that_differ_only_by_their_seed_are_grouped(base: Record) -> None:
    draw = np.random.default_rng(0)
    runs = seeded(base, 0.5, range(3), draw, 0.1)
    assert [seed(record) for record in runs.values()] == [0, 1, 2]
    assert groups(runs) == [tuple(runs)]
    model = runs["0.5 seed 2"].summary["model"]
    recipe = {"architecture": {"encoder": "average"}, "training": {"seed": 2, "epochs": 3}}
    history = model["history"] | {"recipe": recipe}
    other = remade(runs["0.5 seed 2"], summary=runs["0.5 seed 2"].summary | {"model": model | {"history": history}})
    assert groups(runs | {"0.5 seed 2": other}) == [("0.5 seed 0", "0.5 seed 1")]
    assert groups(runs | {"copy": runs["0.5 seed 0"]}) == []
    assert groups({"a": base, "b": base}) == []


def test_groups_of_seeds_are_judged_by_their_spread(base: Record) -> None:
    draw = np.random.default_rng(1)
    first, second = seeded(base, 0.5, range(3), draw, 0.02), seeded(base, 0.9, range(10, 14), draw, 0.02)
    for record in second.values():  # another recipe
        record.summary["model"]["history"]["recipe"]["training"]["epochs"] = 9
    found = differences(first | second)
    assert [side.runs for side in found.sides] == [tuple(first), tuple(second)]
    (only,) = found.differences
    means = [[found.values[DECIDES, "attention", name].mean for name in side] for side in (first, second)]
    expected = stats.ttest_ind(*means, equal_var=False)
    assert (only.noise, only.contrast.sizes) == ("seeds", (3, 4))
    assert only.contrast.p == pytest.approx(expected.pvalue)
    assert only.state == "exceeds noise"
    assert "3 and 4 seeds" in plain(told(found)[0])


def test_one_run_against_seeds_knows_their_spread(base: Record) -> None:
    draw = np.random.default_rng(4)
    many, single = seeded(base, 0.5, range(4), draw, 0.05), run(base, {"attention": np.full(20, 0.55)})
    for runs, sign in ((many | {"single": single}, 1), ({"single": single} | many, -1)):
        (found,) = differences(runs).differences
        expected = alone(
            0.55, np.array([np.mean(list(r.instances["auprc:attention"].to_pylist())) for r in many.values()])
        )
        assert expected is not None
        assert found.noise == "one against seeds"
        assert (found.contrast.gap, found.contrast.p) == pytest.approx((-sign * expected.gap, expected.p))
        assert found.contrast.low <= found.contrast.gap <= found.contrast.high


def test_noise_of_training_raises_no_alarm_where_seeds_tell_it(base: Record) -> None:
    """Texts alone would find a difference in nearly every one of these pairs."""
    draw = np.random.default_rng(23)
    pages, by_seeds, by_texts = 150, 0, 0
    for _ in range(pages):
        first, second = seeded(base, 0.5, range(3), draw, 0.1), seeded(base, 0.5, range(10, 13), draw, 0.1)
        second = {f"other {name}": record for name, record in second.items()}
        for record in second.values():
            record.summary["model"]["history"]["recipe"]["training"]["epochs"] = 9
        by_seeds += bool(differences(first | second).exceeding)
        one, other = next(iter(first.items())), next(iter(second.items()))
        by_texts += bool(differences(dict([one, other])).exceeding)
    assert by_seeds <= stats.binom.ppf(0.999, pages, 0.05)
    assert by_texts > pages / 2


def test_seeds_alone_are_told_as_the_noise_of_training(base: Record) -> None:
    runs = seeded(base, 0.5, range(3), np.random.default_rng(0), 0.1)
    found = differences(runs)
    assert found.differences == ()
    assert "differ only by their seed" in headline(found)
    page = render(runs)
    assert "spread over seeds" in page
    means = [value.mean for value in found.values.values()]
    assert f"± {np.std(means, ddof=1):.3f}" in page


def test_two_seeds_that_differ_are_named_as_noise_of_training(base: Record) -> None:
    runs = seeded(base, 0.5, range(2), np.random.default_rng(0), 0.4)
    found = differences(runs)
    assert found.exceeding[0].noise == "same texts"
    notes = " ".join(map(plain, caveats(found)))
    assert "noise is that of texts only; training again may change more" in notes
    assert "differ only by their seed: what differs between them is the noise of training" in notes


# what cannot be compared


def test_another_epsilon_is_another_question(base: Record) -> None:
    record = synthetic_record(count=30, explainers=NAMES, audits=("adversary", "permutation"))
    other = remade(record, summary=record.summary | {"plan": record.summary["plan"] | {"epsilon": 0.1}})
    found = differences({"a": record, "b": other})
    assert {each.quantity.audit for each in found.differences} == {"permutation"}
    ((what, why),) = found.not_compared
    assert "JSD" in what
    assert "0.01" in why and "0.1" in why


def test_options_of_an_audit_and_the_items_of_attention_are_minded(base: Record) -> None:
    record = synthetic_record(count=30, explainers=NAMES, audits=("adversary", "permutation", "erasure"))
    plan = record.summary["plan"] | {"audits": ["adversary", "permutation", "erasure(thresholds=(0.5,))"]}
    model = record.summary["model"] | {"items": "sentences"}
    other = remade(record, summary=record.summary | {"plan": plan, "model": model})
    found = differences({"a": record, "b": other})
    assert found.differences == ()
    assert any("other options" in why for _, why in found.not_compared)
    assert any("over words in one and over sentences in the other" in why for _, why in found.not_compared)


def test_runs_without_anything_in_common_say_so(base: Record) -> None:
    first = run(base, {"attention": np.linspace(0, 1, 30)})
    second = synthetic_record(count=30, explainers=("gradient",), audits=("permutation",))
    runs = {"a": first, "b": second}
    found = differences(runs)
    assert (found.quantities, found.differences, found.headline) == ((), (), None)
    page = words(" ".join(Page(render(runs)).texts("main")))
    assert "Nothing to put side by side" in page
    assert "share nothing that could be compared" in page
    assert [plain(each) for each in lacking(found)] == [
        "The explainer attention is only in a.",
        "The explainer gradient is only in b.",
        "The audit truth is only in a.",
        "The audit permutation is only in b.",
    ]


def test_an_explainer_of_one_run_alone_is_shown_but_not_compared(base: Record) -> None:
    values = np.linspace(0, 1, 30)
    runs = {"a": run(base, {"attention": values, "lime": values}), "b": run(base, {"attention": values})}
    found = differences(runs)
    assert [each.subject for each in found.differences] == ["attention"]
    assert Page(render(runs)).texts("td", "none") == ["not there"]


def test_corpora_and_yardsticks_that_differ_are_told(base: Record) -> None:
    planted = synthetic_record(count=40, explainers=NAMES, audits=("agreement", "truth"))
    plain_corpus = synthetic_record(count=40, explainers=NAMES, classes=("no", "yes", "maybe"), audits=("agreement",))
    corpus = plain_corpus.summary["corpus"] | {"name": "letters"}
    runs = {"a": planted, "b": remade(plain_corpus, summary=plain_corpus.summary | {"corpus": corpus})}
    found = differences(runs)
    notes = " ".join(map(plain, caveats(found)))
    assert "different corpora (planted:negation and letters)" in notes
    assert "graded by the same measure" in notes
    assert [each.title for each in found.quantities] == ["τ with leave-one-out"]
    assert {each.subject for each in found.differences} == {"attention", "gradient"}
    assert "τ with leave-one-out" in render(runs)


def test_the_number_of_runs_is_bounded(base: Record) -> None:
    record = run(base, {"attention": np.linspace(0, 1, 12)})
    for runs in ({"a": record}, {f"run {place}": record for place in range(MOST + 1)}):
        with pytest.raises(AssayError, match=f"2 to {MOST} runs"):
            differences(runs)


# the page and its other forms


@pytest.fixture(scope="module")
def runs(base: Record) -> dict[str, Record]:
    draw = np.random.default_rng(9)
    first = run(base, {name: draw.uniform(0, 0.4, 60) for name in NAMES})
    second = run(base, {name: draw.uniform(0, 0.4, 60) + 0.5 * (name == "gradient") for name in NAMES})
    return {"one": first, "two": second}


def test_the_page_says_first_what_exceeds_noise(runs: dict[str, Record]) -> None:
    page = Page(render(runs))
    assert words(page.texts("h1")[0]) == (
        "Attention is graded fail in both runs. 1 of 3 differences between the runs exceeds noise."
    )
    first = words(page.texts("ul", "bullets")[0])
    assert "By AUPRC, gradient is better in two than in one, by 0." in first
    assert "n = 60, the same texts" in first
    assert "training again may change" in words(page.texts("main")[0])


def test_what_exceeds_noise_has_a_mark_and_words_in_both_cells(runs: dict[str, Record]) -> None:
    marked = [words(cell) for cell in Page(render(runs)).texts("td", "exceeds")]
    assert len(marked) == 2
    assert marked[0].endswith("▼ below two")
    assert marked[1].endswith("▲ above one")


def test_the_page_is_the_same_each_time_and_asks_for_nothing(runs: dict[str, Record]) -> None:
    text = render(runs)
    assert text == render(runs)
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "http://www.w3.org/2000/svg" in text
    assert text.count("http") == text.count("http://www.w3.org") + text.count("http-equiv")


def test_names_from_anywhere_are_text(base: Record) -> None:
    values = np.linspace(0, 1, 30)
    record = run(base, {HOSTILE: values, "leave_one_out": values})
    moved = run(base, {HOSTILE: values + 1, "leave_one_out": values})
    corpus = record.summary["corpus"] | {"name": HOSTILE, "classes": [HOSTILE, "other"]}
    made = {HOSTILE: remade(record, summary=record.summary | {"corpus": corpus, "command": HOSTILE}), "other": moved}
    text = render(made)
    assert "<script>alert" not in text
    page = Page(text)
    assert any('<script>alert("x")</script>' in cell for cell in page.texts("th"))
    assert "\u202e" not in page.texts("h1")[0] + " ".join(page.texts("li"))
    comparison = differences(made)
    written = markdown(comparison)
    assert "\u202e" not in written
    assert "<script>" not in written.replace("\\<script>", "")
    assert json.loads(data(comparison))["differences"][0]["explainer"] == HOSTILE


def test_names_without_letters_and_names_that_look_alike_stay_apart(base: Record) -> None:
    record = run(base, {"attention": np.linspace(0, 1, 12)})
    found = differences({"": record, "a\n": record, "a": record})
    assert list(found.records) == ["run 1", "a", "a (3)"]


def test_a_dozen_runs_fit_on_a_page(base: Record) -> None:
    draw = np.random.default_rng(8)
    names = [*NAMES, *(f"explainer {place}" for place in range(8))]
    made = {f"run {place}": run(base, {name: draw.random(30) + 0.2 * place for name in names}) for place in range(12)}
    text = render(made)
    page = Page(text)
    assert len(text) < 1_500_000
    assert len([row for row in page.texts("tr") if row]) < 700
    assert " of 66 pairs of runs; most of all it is better in <bdi>run 11</bdi> than in <bdi>run 0</bdi>" in text
    assert "others" in " ".join(page.texts("span", "remark"))


def test_json_holds_every_number_and_is_finite(runs: dict[str, Record]) -> None:
    found = differences(runs)
    told_data = json.loads(data(found), parse_constant=lambda name: pytest.fail(name))
    assert len(told_data["differences"]) == len(found.differences) == 3
    assert len(told_data["values"]) == 8
    gradient = next(each for each in told_data["differences"] if each["explainer"] == "gradient")
    assert gradient["state"] == "exceeds noise"
    assert gradient["p_corrected"] == pytest.approx(3 * gradient["p"])
    assert told_data["headline"].startswith("Attention is graded fail in both runs.")


def test_the_headline_counts_what_each_run_says_of_itself(record: Record) -> None:
    strong = changed(record, "deciding", "attention", "economy", mean=0.98, low=0.97, high=0.99)
    assert headline(differences({"a": record, "b": strong})).startswith(
        "Attention is graded fail in 1 of 2 runs and pass in 1."
    )


def test_provenance_tells_what_differs_and_what_does_not(base: Record) -> None:
    other = remade(base, summary=base.summary | {"versions": base.summary["versions"] | {"torch": "3.0"}})
    found = provenance({"a": base, "b": other})
    assert found[0] == (("versions.torch", ("2.13.0", "3.0")),)
    assert ("plan.encoder", "lstm") in found[1]
    assert not any("findings" in name or "losses" in name for name, _ in found[1])


# the command


@pytest.fixture
def folders(runs: dict[str, Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    for name, record in runs.items():
        record.write(tmp_path / name)
    return [Path("one"), Path("two")]


def show(folders: list[Path], form: str = "html", out: Path | None = None) -> str:
    console = Console(file=io.StringIO(), width=100)
    show_report(reported(*folders, format=form, out=out), console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("form", list(FORMS))
def test_every_form_is_written_and_may_be_written_again(folders: list[Path], form: str) -> None:
    shown = words(show(folders, form))
    assert "Attention is graded fail in both runs." in shown
    assert "gradient is better in two than in one" in shown
    assert f"Comparison: comparison.{form}" in shown
    path = Path(f"comparison.{form}")
    assert ours(path)
    before = path.read_bytes()
    path.write_bytes(before + b" ")
    show(folders, form)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["my notes", "", '<meta name="generator" content="assay 0.1.0">'])
def test_a_file_that_is_no_comparison_is_left_alone(folders: list[Path], content: str) -> None:
    path = Path("comparison.html")
    path.write_text(content, encoding="utf-8")
    with pytest.raises(AssayError, match="no comparison of assay"):
        show(folders)
    assert path.read_text(encoding="utf-8") == content


def test_what_cannot_be_compared_is_told_in_a_sentence(folders: list[Path]) -> None:
    with pytest.raises(AssayError, match="named twice"):
        show([*folders, Path("two/../one")])
    with pytest.raises(AssayError, match="no folder absent"):
        show([*folders, Path("absent")])
    with pytest.raises(AssayError, match="is a folder"):
        show(folders, out=Path("one"))


def test_runs_are_named_by_as_much_of_their_path_as_is_needed(tmp_path: Path) -> None:
    places = [tmp_path / part for part in ("a/run", "b/run", "c/other")]
    assert list(run_names(places)) == ["a/run", "b/run", "other"]


def test_a_finding_without_rows_is_shown_and_not_compared(make: Callable[..., Record]) -> None:
    record = make(count=30, explainers=NAMES, audits=("truth",))
    gone = remade(record, instances=record.instances.drop_columns(["auprc:gradient"]))
    found = differences({"a": record, "b": changed(gone, "truth", "gradient", "auprc", mean=0.1)})
    assert (DECIDES, "gradient", "b") in found.values
    assert "gradient" not in {each.subject for each in found.differences}
