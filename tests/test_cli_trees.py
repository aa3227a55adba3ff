"""`assay explain --tree` as a person meets it."""

from __future__ import annotations

import json
import shutil

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
    after = [line for line in out.splitlines()[out.splitlines().index("acd") + 1 :] if "rust" not in line and line]
    assert after[0].endswith(f"  {TEXT}")
    assert len(after) == 12
    assert after[-1].startswith("Cohesion: with the words of its strongest phrase, “")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--tree", "hegde"), "Unknown tree 'hegde'; did you mean 'hedge'?"),
        (("--tree", "hedge", "--scorer", "shaply"), "Unknown scorer 'shaply'; did you mean 'shapley'?"),
        (("--scorer", "alone"), "name a tree as well"),
        (("--tree", "hedge(window=8)"), "0 to 3 phrases"),
        (("--tree", "soc", "--scorer", "alone"), "The tree 'soc' has a scorer of its own"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(explain, words, hint):
    code, out, told = explain(*words)
    assert (code, out) == (2, "")
    assert hint in " ".join(told.split())
    assert len(told.strip().splitlines()) == 1


def test_where_a_model_learnt_from_must_be_known_to_sample_from_it(explain):
    code, _, told = explain("--tree", "acd", "--scorer", "soc")
    assert code == 2
    assert "Where this model learnt from is not known; name the texts with --corpus." in " ".join(told.split())


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A model of a small file, which its card names."""
    folder = tmp_path_factory.mktemp("learnt")
    texts = [f"{word} {other}" for word in ("w1 w2", "w3 w4", "w5 w6", "w7 w8") for other in ("w9", "w10", "w11 w12")]
    rows = [f"{text},{('no', 'yes')[place % 2]}" for place, text in enumerate(texts * 4)]
    for name in ("mine", "other"):
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
        rows = rows[:-8]
    corpus = toolkit.corpus(str(folder / "mine.csv"))
    toolkit.train(corpus, encoder="average", embedding=4, hidden=4, epochs=1, out=folder / "model")
    return folder


@pytest.mark.parametrize("tree", ["soc", "scd"])
def test_a_language_model_is_fitted_once_and_kept_beside_the_model(monkeypatch, capsys, learnt, tree):
    words = ("explain", "w1 w2 w9", "--model", str(learnt / "model"), "--explainers", "occlusion", "--json")
    shutil.rmtree(learnt / "model" / "language", ignore_errors=True)
    code, _, told = call(monkeypatch, capsys, *words, "--tree", tree)
    assert code == 2 and "name the texts with --corpus" in " ".join(told.split())
    code, _, told = call(monkeypatch, capsys, *words, "--tree", tree, "--corpus", str(learnt / "other.csv"))
    assert code == 2 and "The model learnt from mine, and from other texts than these" in " ".join(told.split())
    assert not (learnt / "model" / "language").exists()
    code, out, told = call(monkeypatch, capsys, *words, "--tree", tree, "--corpus", str(learnt / "mine.csv"))
    assert code == 0 and "language 4/4" in told
    code, again, told = call(monkeypatch, capsys, *words, "--tree", tree)
    assert code == 0 and "language" not in told and again == out
    assert Tree.of(json.loads(out)["trees"][tree]).words == 3
    scorer = call(monkeypatch, capsys, *words, "--tree", "acd", "--scorer", tree)[1]
    assert json.loads(scorer)["trees"][f"acd by {tree}"] == json.loads(out)["trees"][tree]
    found = toolkit.explain(learnt / "model", "w1 w2 w9", ["occlusion"], tree=tree)
    assert found.trees[tree].json() == json.loads(out)["trees"][tree]


def test_an_audit_fits_it_too(monkeypatch, capsys, learnt, tmp_path):
    audited = ("--explainers", "occlusion,random", "--audits", "erasure", "--tree", "soc", "--limit", "3")
    small = ("--encoder", "average", "--embedding", "4", "--hidden", "4", "--epochs", "1")
    texts, model = ("--corpus", str(learnt / "mine.csv")), str(tmp_path / "trained")
    assert call(monkeypatch, capsys, "train", *texts, *small, "--out", model)[0] == 0
    code, _, told = call(monkeypatch, capsys, "audit", *texts, "--model", model, *audited, "--out", str(tmp_path))
    assert code == 0 and "language 4/4" in told, told
    assert (tmp_path / "trained" / "language" / "language.json").exists()
    assert "soc" in (tmp_path / "report.html").read_text(encoding="utf-8")
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert {tree["name"] for each in summary["trees"] for tree in each["trees"]} == {"soc"}
