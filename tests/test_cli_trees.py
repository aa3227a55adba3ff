"""`assay explain --tree` as a person meets it."""

from __future__ import annotations

import json

import pytest

import assay as toolkit
from assay.models import store
from assay.models.store import Trained
from assay.trees import Tree
from tests import builders
from tests.calling import call
from tests.workbenches import CLASSES, tokeniser

TEXT = "w1 w2 w3 w4 w5 w6"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "none"
    store.save(Trained(builders.kind("none"), tokeniser(), CLASSES[:2]), folder)
    return str(folder)


@pytest.fixture
def explain(monkeypatch, capsys, model):
    words = ("explain", TEXT, "--model", model, "--explainers", "occlusion")
    return lambda *more: call(monkeypatch, capsys, *words, *more)


def test_json_holds_the_trees(explain, model):
    code, out, _ = explain("--tree", "hedge,acd(priority=added)", "--json")
    assert code == 0
    trees = {name: Tree.of(stored) for name, stored in json.loads(out)["trees"].items()}
    assert list(trees) == ["hedge", "acd(priority=added)"]
    assert all(tree.words == len(tree.levels) == 6 for tree in trees.values())
    assert toolkit.explain(model, TEXT, ["occlusion"], tree="hedge").trees == {"hedge": trees["hedge"]}
    assert json.loads(explain("--json")[1])["trees"] == {}


def test_a_scorer_changes_what_phrases_count_and_not_the_cuts_of_hedge(explain):
    plain, scored = (
        json.loads(explain("--tree", "hedge", *more, "--json")[1])["trees"] for more in ((), ("--scorer", "shapley"))
    )
    (name,) = scored
    assert name == "hedge by shapley"
    cuts = [[[phrase[:2] for phrase in level] for level in tree["levels"]] for tree in (plain["hedge"], scored[name])]
    assert cuts[0] == cuts[1]
    assert plain["hedge"]["levels"] != scored[name]["levels"]


def test_without_colours_a_tree_is_an_outline(explain):
    code, out, _ = explain("--tree", "acd")
    assert code == 0
    after = out.splitlines()[out.splitlines().index("acd") + 1 :]
    assert after[0].endswith(f"  {TEXT}")
    assert len(after) == 11


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--tree", "hegde"), "Unknown tree 'hegde'; did you mean 'hedge'?"),
        (("--tree", "hedge", "--scorer", "shaply"), "Unknown scorer 'shaply'; did you mean 'shapley'?"),
        (("--scorer", "alone"), "name a tree as well"),
        (("--tree", "hedge(window=8)"), "0 to 3 phrases"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(explain, words, hint):
    code, out, told = explain(*words)
    assert (code, out) == (2, "")
    assert hint in " ".join(told.split())
    assert len(told.strip().splitlines()) == 1


def test_a_scorer_that_the_model_cannot_serve_is_refused_with_the_reason(explain):
    code, _, told = explain("--tree", "acd", "--scorer", "soc")
    assert code == 2
    assert " ".join(told.split()).startswith(
        "The tree 'acd by soc' cannot be built for this model: there is no language"
    )
