from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from assay.audits import AUDITS
from assay.lookup import subjects
from assay.records import Record
from assay.report.canvas import svg
from assay.report.figures import KINDS
from assay.report.figures import figure as figure_of
from assay.stories import story_of
from tests.report.synthetic import remade
from tests.report.trained import ADVERSARIES, EPSILONS, GUIDES, MASSES, MODELS, SEEDS, STRENGTHS, VARIANTS

NAMES = list(dict.fromkeys(each.name for audit in MODELS for each in story_of(AUDITS[audit]).drawings))


@pytest.fixture(scope="module")
def models(make: Callable[..., Record]) -> Record:
    return make(count=60, audits=MODELS)


def tables(record: Record, name: str) -> list[list[dict[str, Any]]]:
    """All rows that a figure draws, layer by layer."""
    figure = figure_of(record, name)
    assert figure is not None
    drawn = figure.to_dict()
    own = [part["data"]["values"] for part in (drawn, *drawn["layer"]) if "values" in part.get("data", {})]
    return [*drawn.get("datasets", {}).values(), *own]


def rows(record: Record, name: str, key: str) -> list[dict[str, Any]]:
    return next(table for table in tables(record, name) if key in table[0])


def words(record: Record, name: str) -> list[str]:
    figure = figure_of(record, name)
    assert figure is not None
    return [node.text or "" for node in ElementTree.fromstring(svg(figure)).iter() if node.tag.endswith("}text")]


def expected(record: Record, audit: str, measure: str) -> dict[str, float]:
    found = (f for f in record.findings if (f.audit, f.measure, f.group) == (audit, measure, "all"))
    return {f.subject: f.mean for f in found}


def test_the_adversaries_make_a_path_and_the_seeds_a_cloud(models: Record) -> None:
    drawn = [table for table in tables(models, "tvd_jsd") if "kind" in table[0]]
    jsd, tvd = (expected(models, "trained_adversary", measure) for measure in ("jsd", "tvd"))
    path = next(table for table in drawn if len(table) == len(ADVERSARIES))
    assert [(row["label"], row["x"], row["y"]) for row in path] == [(n, tvd[n], jsd[n]) for n in ADVERSARIES]
    assert [row["place"] for row in path] == [0, 1, 2, 3, 4]
    cloud = next(table for table in drawn if table[0]["label"] == "seed 1")
    assert [(row["label"], row["x"], row["y"]) for row in cloud] == [(n, tvd[n], jsd[n]) for n in SEEDS]
    assert [{"x": 0, "y": 0}] in tables(models, "tvd_jsd"), "the audited model"
    assert "λ=1" in words(models, "tvd_jsd")


def test_names_that_would_overlap_are_left_out(models: Record, changed: Callable[..., Record]) -> None:
    record = models
    for measure in ("jsd", "tvd"):
        record = changed(record, "trained_adversary", "λ=0.1", measure, mean=0.3)
        record = changed(record, "trained_adversary", "λ=1", measure, mean=0.301)
    shown = [word for word in words(record, "tvd_jsd") if word.startswith("λ=")]
    assert "λ=1" in shown
    assert "λ=0.1" not in shown


def test_seeds_alone_can_be_drawn(make: Callable[..., Record]) -> None:
    record = make(count=20, audits=("seed_variance",))
    shown = words(record, "tvd_jsd")
    assert "other seeds (null)" in shown
    assert "trained adversary, by λ" not in shown


def test_deception_shows_accuracy_by_mass_and_the_model_without_the_words(models: Record) -> None:
    drawn = rows(models, "deception", "place")
    mass, right = (expected(models, "deception", measure) for measure in ("mass", "right"))
    assert [(row["label"], row["x"], row["y"]) for row in drawn] == [(n, mass[n], right[n]) for n in MASSES]
    control = next(table for table in tables(models, "deception") if table[0].get("label") == "without these words")
    assert control[0]["y"] == right["without"]
    assert "without these words" in words(models, "deception")


def test_lines_run_over_the_strengths_in_their_order_with_softmax_apart(models: Record) -> None:
    tau = expected(models, "sparsity", "tau_input")
    held = [table for table in tables(models, "sparsity_agreement") if "name" in table[0]]
    joined = next(table for table in held if all(row["x"] != "softmax" for row in table))
    mine = [(row["x"], row["mean"]) for row in joined if row["name"] == "with the importance of words"]
    swept = [name for name in STRENGTHS if name != "softmax"]
    assert mine == list(zip(["−10", "−2", "0", "0.5", "0.9"], [tau[name] for name in swept], strict=True))
    apart = next(table for table in held if all(row["x"] == "softmax" for row in table))
    assert [row["mean"] for row in apart if row["name"] == "with the importance of words"] == [tau["softmax"]]
    shown = words(models, "sparsity")
    assert next(word for word in shown if word in {"softmax", "−10", "−2", "0", "0.5", "0.9"}) == "softmax"
    assert {"accuracy", "entropy of attention", "words with any attention"} <= set(shown)


def test_a_support_in_words_is_not_drawn_on_an_axis_of_shares(models: Record, changed: Callable[..., Record]) -> None:
    record = changed(models, "sparsity", "softmax", "support", mean=12.5)
    assert "words with any attention" not in words(record, "sparsity")


def test_variants_have_a_line_over_what_the_output_may_move(models: Record) -> None:
    drawn = rows(models, "word_level", "name")
    for name in VARIANTS:
        wanted = [(f"{e:g}", expected(models, "word_level", f"jsd@{e:g}")[name]) for e in EPSILONS]
        assert [(row["x"], row["mean"]) for row in drawn if row["name"] == name] == wanted
    assert set(VARIANTS) <= set(words(models, "word_level"))


@pytest.mark.parametrize(
    ("name", "audit", "measure", "null"),
    [
        ("guide", "guide", "right", "learnt"),
        ("word_level_right", "word_level", "right", "base"),
        ("word_level_information", "word_level", "information", "base"),
        ("word_level_shuffled", "word_level", "median_tvd", "base"),
        ("frozen_uniform", "frozen_uniform", "right", None),
        ("dispersion", "dispersion", "entropy", None),
    ],
)
def test_every_model_has_a_dot_with_its_interval(
    name: str, audit: str, measure: str, null: str | None, models: Record
) -> None:
    drawn, found = rows(models, name, "name"), subjects(models, audit, measure)
    ends = sorted((f.mean, f.low, f.high) for f in found.values())
    assert sorted((row["mean"], row["low"], row["high"]) for row in drawn) == ends
    lines = [table[0]["x"] for table in tables(models, name) if set(table[0]) == {"x"}]
    assert lines == ([] if null is None else [found[null].mean])
    assert {row["label"] for row in drawn} <= set(words(models, name))


def test_the_guides_are_percentages(models: Record) -> None:
    rates = expected(models, "guide", "right")
    assert {f"{100 * rates[name]:.1f} %" for name in GUIDES} <= set(words(models, "guide"))


def test_all_figures_are_listed_with_captions() -> None:
    for audit in AUDITS.values():
        for drawing in story_of(audit).drawings:
            assert drawing.name
            assert drawing.kind in (*KINDS, "matrix", "flips")
            assert bool(drawing.caption) is (drawing.kind in KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_described_in_ink_that_follows_the_page(name: str, models: Record) -> None:
    figure = figure_of(models, name)
    assert figure is not None
    drawn = svg(figure)
    assert drawn.count("<title") == 1
    assert "currentColor" in drawn
    assert "#3d3b47" not in drawn
    width = float(drawn.partition('width="')[2].partition('"')[0])
    assert width < 400, "text stays readable on a phone"


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_without_numbers_is_not_drawn(name: str, models: Record) -> None:
    assert figure_of(remade(models, summary=models.summary | {"findings": []}), name) is None
