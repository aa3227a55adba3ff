"""The page of a transformer: the layers drawn, and nothing called exact that was searched for."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

from assay.audits.equal_predictions import Adversary
from assay.audits.permutation import Permutation
from assay.audits.sanity import Sanity
from assay.audits.stack import LayerByLayer
from assay.data.examples import Example
from assay.models.store import Opened
from assay.records import Record
from assay.report.audit import render
from assay.report.examples import notes
from assay.report.facts import facts
from assay.report.figures import figure
from assay.report.sections import captions, sections
from assay.report.tables import measure_rows
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from assay.stories import story_of
from tests import pretrained
from tests.report.synthetic import remade, synthetic_record

PLAN = AuditPlan(
    ("attention", "gradient", "leave_one_out", "random"),
    ("agreement", "permutation(stack_shuffles=4)", "adversary(steps=4)", "layers(shuffles=2)", "minimal_set", "sanity"),
    seed=7,
)


@cache
def record(kind="bert"):
    draw = random.Random(0)
    texts = [" ".join(draw.choices(pretrained.WORDS, k=draw.randint(1, 8))) for _ in range(12)]
    network = pretrained.attentive() if kind == "attentive" else pretrained.pretrained(kind, initializer_range=0.1)
    opened = Opened(network, pretrained.tokeniser(), ("negative", "neutral", "positive"), {"pretrained": kind})
    return audited(opened, [Example(text, place % 3) for place, text in enumerate(texts)], PLAN)


def section(name):
    return next(each for each in sections(record()) if each.name == name)


def test_the_layers_have_an_answer_a_figure_and_a_table():
    mine = section("layers")
    assert mine.title == story_of(LayerByLayer()).title
    assert mine.figures == ("layers",)
    assert mine.answer.startswith("Shuffling the attention of all layers moves the prediction by 0.")
    assert "Of single layers layer " in mine.answer
    assert mine.grid.columns[0] == "of"
    assert {row[0] for row in mine.grid.rows} == {"all layers", "layer 0", "layer 1"}
    described = figure(record(), "layers").to_dict()["description"]
    assert all(f"{place} {kind}" in described for place in ("0", "1", "all") for kind in ("made equal", "shuffled"))


def test_without_that_audit_there_is_neither():
    assert LayerByLayer().conclude(synthetic_record(count=20)).answer == ""
    assert figure(synthetic_record(count=20), "layers") is None


def test_the_adversary_of_a_stack_is_never_called_exact():
    mine = section("adversary")
    assert mine.kind == "lower bound"
    assert all(row[-1] == "lower bound" for row in mine.grid.rows)
    assert "exact" not in mine.answer
    assert "which a search found, and provably at most" in mine.answer
    assert "over layers, heads, places and texts" in Adversary().conclude(record()).answer
    assert "was found" in captions(record())["adversary"]


def test_the_adversary_of_an_attention_that_pools_is_what_it_was():
    pooled = next(each for each in sections(record("attentive")) if each.name == "adversary")
    assert pooled.kind == "bracket"
    assert "certified" in pooled.answer
    assert "layers" not in pooled.answer
    assert next(each for each in sections(record("attentive")) if each.name == "layers").why_not.startswith(
        "one attention"
    )
    assert next(each for each in sections(record("attentive")) if each.name == "minimal_set").why_not is None


def test_words_speak_of_layers_for_a_stack_and_of_words_elsewhere():
    assert "in every layer, head and place" in Permutation().conclude(record()).answer
    assert "among the words" in Permutation().conclude(synthetic_record(count=20)).answer
    assert any("every layer and head" in text for _, text in facts(record()))
    assert any("uppermost layer" in note for note in notes(record()))


def test_every_depth_of_the_cascade_is_drawn_or_some_of_many():
    described = figure(record(), "sanity").to_dict()["description"]
    for words in ("classifier randomised", "down to layer 1", "down to layer 0", "and embedding"):
        assert words in described
    steps = ["classifier", *(f"layer {layer}" for layer in range(11, -1, -1)), "embedding"]
    deep = synthetic_record(count=20, audits=("sanity",))
    rows = [row for row in deep.summary["findings"] if row["measure"] == "similarity_decoder"]
    deep.summary["findings"] = [row | {"measure": f"similarity_{step}"} for step in steps for row in rows]
    described = figure(deep, "sanity").to_dict()["description"]
    for words in ("classifier randomised", "down to layer 0", "and embedding"):
        assert words in described
    label = story_of(Sanity()).measure("similarity_layer 3").label
    assert label == "τ after randomising from the output down to layer 3"


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_whole_page_is_written(kind):
    page = render(record(kind))
    assert story_of(LayerByLayer()).title in page
    assert "the model does not end in a linear decoder over one attention" in page
    assert "This is exact" not in page
    assert "{item" not in page


def test_the_table_tells_layers_over_all_texts_only():
    assert {row[2] for row in measure_rows(record(), "layers").rows} == {"all"}


def test_a_record_of_an_earlier_version_is_counted_from_0(tmp_path):
    made = record()
    named = ("subject", "measure")
    rows = made.summary["findings"]
    earlier = [each | {part: _counted_from_1(each[part]) for part in named} for each in rows]
    summary = {key: each for key, each in made.summary.items() if key != "first_layer"} | {"findings": earlier}
    names = [_counted_from_1(name) for name in made.instances.column_names]
    remade(made, summary=summary, instances=made.instances.rename_columns(names)).write(tmp_path)
    read = Record.read(tmp_path)
    assert any("layer 2" in name for name in names)
    assert (read.findings, read.instances.column_names) == (made.findings, made.instances.column_names)
    assert Record.read(_written(read, tmp_path / "again")).findings == made.findings


def _counted_from_1(name):
    return re.sub(r"layer (\d+)", lambda number: f"layer {int(number[1]) + 1}", name)


def _written(made, folder):
    made.write(folder)
    return folder
