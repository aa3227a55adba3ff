"""Hierarchies of phrases in an audit: some texts of the page, divided, stored and drawn."""

from pathlib import Path

import pytest

from assay.data.corpora import corpus
from assay.errors import AssayError
from assay.explainers.phrase_trees import TREES
from assay.records import Record
from assay.report.audit import render
from assay.run.api import train
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from assay.run.explaining import LONGEST, MOST, explain
from assay.trees import Tree

PLAN = AuditPlan(("attention", "random"), ("agreement",), limit=12, tree="acd", scorer="alone")


@pytest.fixture(scope="module")
def planted():
    return corpus("planted:negation")


@pytest.fixture(scope="module")
def model(planted):
    return train(planted, encoder="average", embedding=16, hidden=8, epochs=1)


@pytest.fixture(scope="module")
def folder(model, planted, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("run")
    audited(model, planted.test, PLAN, place)
    return place


def test_the_trees_of_an_audit_are_those_of_its_texts(folder, model, planted):
    trees = Record.read(folder).summary["trees"]
    assert 0 < len(trees) <= MOST
    for each in trees:
        example = planted.test[each["example"]]
        told = explain(model, example.text, ["random"], tree="acd", scorer="alone")
        (found,) = told.trees.values()
        stored = Tree.of(each["trees"][0])
        assert each["words"] == told.words and len(each["words"]) <= LONGEST
        assert (each["predicted"], each["label"]) == (told.predicted, planted.classes[example.label])
        assert stored.levels[0][-1].stop == len(told.words)
        assert stored.scores == pytest.approx(found.scores, abs=1e-6)


def test_the_page_draws_them(folder):
    record = Record.read(folder)
    page = render(record)
    assert page.count('<figure class="tree">') == len(record.summary["trees"])
    assert 'href="#phrases"' in page


def test_a_page_without_trees_says_nothing_of_phrases(folder):
    record = Record.read(folder)
    del record.summary["trees"]
    assert "#phrases" not in render(record)


def test_a_plan_without_trees_is_what_it_was(folder):
    assert "tree" not in AuditPlan().json()
    assert PLAN.json()["tree"] == "acd" and Record.read(folder).summary["plan"]["scorer"] == "alone"


def test_an_unknown_tree_is_refused_before_the_work():
    with pytest.raises(AssayError, match="hedge"):
        AuditPlan(tree="oak")
    assert "oak" not in TREES
