"""Three lines of Python: what may be given, and what comes back."""

from __future__ import annotations

import csv
import importlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
import torch

import assay
from assay.audits.cases import Answer, numpy
from assay.audits.pairwise import Agreement
from assay.data.examples import examples_for, matched
from assay.data.planted import PLANTED
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.occlusion import Occlusion
from assay.explainers.surrogates import Lime
from assay.intervene.edits import uniform
from assay.models import store
from assay.run.examination import AuditPlan
from assay.run.reporting import Result

FEW = ["attention", "leave_one_out", "random"]


@pytest.fixture(scope="module")
def corpus():
    whole = PLANTED["planted:keyword"](0)
    return replace(whole, train=whole.train[:200], dev=whole.dev[:50], test=whole.test[:30])


@pytest.fixture(scope="module")
def model(corpus):
    return assay.train(corpus, encoder="average", embedding=8, hidden=4, epochs=2)


@pytest.fixture
def reviews(corpus, tmp_path):
    """The test texts as a file, under class names in another case and order."""
    path = tmp_path / "reviews.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label", "split"])
        for split in ("train", "test"):
            for example in getattr(corpus, split):
                rows.writerow([example.text, corpus.classes[example.label].upper(), split])
    return path


def same(one, other):
    return one.record.examples.equals(other.record.examples)


def embedding_norm(model, batch, target):
    return model.embed(batch).norm(dim=-1) + 1.0  # also on padding


@dataclass(frozen=True)
class Picky:
    """Serves no model."""

    def __call__(self, model, batch, target):
        raise AssertionError

    def unfit(self, model):
        return "it serves no model"


@dataclass(frozen=True)
class Mass:
    """An audit that no package has."""

    paper: str = "none"

    def kind(self, classes):
        return "exact"

    def unfit(self, case):
        return None

    def __call__(self, case):
        return Answer({f"mass:{name}": numpy(each.abs().sum(-1)) for name, each in case.scores.items()})


def test_a_corpus_stands_for_its_test_split(model, corpus):
    whole = assay.audit(model, corpus, FEW, ["truth"])
    assert same(whole, assay.audit(model, corpus.test, FEW, ["truth"]))
    assert whole.record.summary["corpus"]["name"] == "planted:keyword"
    assert whole.record.summary["corpus"]["train"] == 200


@pytest.mark.parametrize("as_given", [str, lambda path: path], ids=["text", "path"])
def test_a_file_is_read_and_its_classes_are_the_model_s(model, corpus, reviews, as_given):
    found = assay.audit(model, as_given(reviews), FEW, ["agreement"])
    labels = found.record.examples["label"].to_pylist()
    assert labels == [example.label for example in corpus.test]
    assert found.record.summary["corpus"]["name"] == "reviews"


def test_a_corpus_of_classes_in_another_order_is_matched(model, corpus):
    turned = replace(
        corpus,
        classes=corpus.classes[::-1],
        test=tuple(example.relabelled([1, 0]) for example in corpus.test),
    )
    assert same(assay.audit(model, turned, FEW, ["truth"]), assay.audit(model, corpus, FEW, ["truth"]))


def test_the_name_of_a_corpus_is_enough(model):
    found = assay.audit(model, "planted:keyword", ["random"], ["truth"], limit=5)
    assert len(found.record.examples) == 5


def test_classes_that_the_model_does_not_know_are_refused():
    with pytest.raises(AssayError, match="the class 'angry'; the model does not know it, only bad, good"):
        matched(["angry", "good"], ["bad", "good"])
    assert matched(["Good", "BAD"], ["bad", "good"]) == [1, 0]
    assert matched(["1", "0"], ["bad", "good"]) == [1, 0]


def test_a_split_that_is_none_is_refused(corpus):
    with pytest.raises(AssayError, match="split"):
        examples_for(corpus, "tset", corpus.classes)
    assert len(examples_for(corpus, "all", corpus.classes)) == 280


def test_no_examples_are_refused(model, corpus):
    for nothing in ([], replace(corpus, test=())):
        with pytest.raises(AssayError, match="no examples"):
            assay.audit(model, nothing)


def test_a_stored_model_may_be_named(model, corpus, tmp_path):
    store.save(model, tmp_path / "model")
    text = corpus.test[0].text
    assert assay.explain(tmp_path / "model", text, FEW) == assay.explain(model, text, FEW)
    named = assay.audit(str(tmp_path / "model"), corpus, FEW, ["truth"])
    assert same(named, assay.audit(model, corpus, FEW, ["truth"]))


def test_one_s_own_explainer_stands_beside_ours_and_leaves_no_trace(model, corpus):
    before = dict(EXPLAINERS)
    result = assay.audit(model, corpus, [embedding_norm, *FEW], ["truth"])
    assert list(result.record.summary["explainers"]) == ["embedding_norm", *FEW]
    assert result.record.summary["plan"]["explainers"] == ("embedding_norm", *FEW)
    assert result.record.finding("truth", "embedding_norm", "auprc") is not None
    assert before == EXPLAINERS
    found = assay.explain(model, corpus.test[0].text, [embedding_norm, "random"])
    assert min(found.scores["embedding_norm"]) >= 1
    assert "embedding_norm" in found._repr_html_()


def test_one_s_own_explainer_gets_nothing_on_padding(model, corpus):
    seen = []

    def spy(model, batch, target):
        seen.append(batch.mask)
        return torch.full(batch.mask.shape, torch.nan).masked_fill(batch.mask, 0.5)

    result = assay.audit(model, corpus, [spy, "random"], ["agreement", "erasure"])
    assert not all(mask.all() for mask in seen), "some texts are padded"
    assert {score for row in result.record.examples["score:spy"].to_pylist() for score in row} == {0.5}


@pytest.mark.parametrize(
    ("explainers", "sentence"),
    [
        ([lambda model, batch, target: batch.mask.float()], "names no explainer"),
        ([embedding_norm, embedding_norm], "Name each explainer once"),
        ([Picky()], "it serves no model"),
        ([lambda: 0, "nonsense"], "explainer"),
    ],
)
def test_what_cannot_be_an_explainer_is_said(model, explainers, sentence):
    with pytest.raises(AssayError, match=sentence):
        assay.explain(model, "a film", explainers)


def test_scores_of_another_shape_are_refused(model):
    def short(model, batch, target):
        return batch.mask.float()[:, :1]

    with pytest.raises(AssayError, match=r"one score a token, here \(1, 2\); this one gives \(1, 1\)"):
        assay.explain(model, "a film", [short])


def test_one_s_own_audit_is_asked_beside_ours(model, corpus):
    result = assay.audit(model, corpus, ["random", "attention"], ["truth", Mass()], limit=5)
    assert list(result.record.summary["audits"]) == ["truth", "Mass"]
    assert result.record.summary["plan"]["audits"] == ("truth", "Mass")
    assert result.record.finding("Mass", "random", "mass").mean > 0
    named = assay.audit(model, corpus, ["random"], {"weight": Mass(), "truth": "truth"}, limit=5)
    assert list(named.record.summary["audits"]) == ["weight", "truth"]
    with pytest.raises(AssayError, match=r"Mass is a class; give an object of it, as in Mass\(\)"):
        assay.audit(model, corpus, ["random"], [Mass], limit=5)


def test_explainers_may_stand_by_names_of_one_s_own(model, corpus):
    found = assay.explain(model, corpus.test[0].text, {"mine": embedding_norm, "a": "random(seed=3)", "b": "random"})
    assert list(found.scores) == ["mine", "a", "b"]
    assert found.scores["a"] != found.scores["b"]
    with pytest.raises(AssayError, match="There is an explainer 'random' already"):
        AuditPlan.of({"random": embedding_norm})


def test_an_object_of_ours_is_known_by_its_name_and_options():
    assert AuditPlan.of([Lime(samples=7), Occlusion("zero"), "random"], [Agreement()]).explainers == (
        *("lime(samples=7)", "occlusion_zero", "random"),
    )
    assert AuditPlan.of(["random"], [Agreement()]).audits == ("agreement",)


def test_scores_may_be_given_as_numbers(model, corpus):
    texts = corpus.test[:6]
    scores = [np.arange(len(assay.explain(model, each.text, ["random"]).words)) for each in texts]
    found = assay.explain(model, texts[0].text, {"mine": scores[0], "random": "random"})
    assert found.scores["mine"] == scores[0].tolist()
    result = assay.audit(model, list(texts), {"mine": scores, "random": "random"}, ["truth", "sanity"])
    assert result.record.examples["score:mine"].to_pylist() == [each.tolist() for each in scores]
    with pytest.raises(AssayError, match=r"Text 0 has .* words, and scores of shape"):
        assay.audit(model, list(texts), {"mine": [each[1:] for each in scores]}, ["truth"])
    with pytest.raises(AssayError, match="Scores are given for 2 texts, and text 5 has none"):
        assay.audit(model, list(texts), {"mine": scores[:2]}, ["truth"])


class Frame:
    """What a DataFrame of pandas, polars or a table of pyarrow has."""

    def __init__(self, cells, names="columns"):
        self.cells = cells
        setattr(self, names, list(cells))

    def __getitem__(self, name):
        return np.array(self.cells[name], dtype=object)


def test_tables_and_lists_of_pairs_are_corpora(model, corpus):
    pairs = [(each.text, corpus.classes[each.label]) for each in corpus.test]
    whole = assay.audit(model, corpus.test, FEW, ["agreement"])
    assert same(assay.audit(model, pairs, FEW, ["agreement"]), whole) is False  # they say nothing of deciding words
    columns = {"text": [text for text, _ in pairs], "label": [label for _, label in pairs]}
    tables = [columns, Frame(columns), Frame(columns, "column_names"), pa.table(columns)]
    for table in [pairs, *tables]:
        found = assay.corpus(table, whole=True)
        assert [example.text for example in found.test] == columns["text"]
    for wrong, sentence in (
        (["a film"], "Texts alone say no class"),
        ([("a", "b", "c")], "holds \\(text, label\\) pairs"),
        (3, "not int"),
        (Frame({"words": ["a"], "label": ["b"]}), "no column 'text'"),
    ):
        with pytest.raises(AssayError, match=sentence):
            assay.corpus(wrong)


def test_what_is_no_model_is_said(model):
    with pytest.raises(AssayError, match="not Linear; a module needs its tokenizer"):
        assay.explain(torch.nn.Linear(2, 2), "a film")
    with pytest.raises(AssayError, match="Linear is no classifier of transformers"):
        assay.wrap(torch.nn.Linear(2, 2), None)
    again = assay.wrap(model.network, model.tokeniser, model.classes)
    assert assay.explain(again, "a film", FEW) == assay.explain(model, "a film", FEW)


def test_attention_is_edited_by_an_act_an_edit_or_its_name(model, corpus):
    text = corpus.test[0].text
    assert "stays" in str(assay.attend(model, text, "uniform")) or "changes" in str(
        assay.attend(model, text, "uniform")
    )
    same_by_hand = assay.attend(model, text, lambda weights, mask: uniform(weights, mask)).answer
    assert same_by_hand["weights"] == assay.attend(model, text, "uniform").answer["weights"]
    assert max(assay.attend(model, text, "one_hot").answer["weights"]) == 1
    with pytest.raises(AssayError, match="Unknown act 'unform'; did you mean 'uniform'"):
        assay.attend(model, text, "unform")
    with pytest.raises(AssayError, match="An edit gives as many weights as there are"):
        assay.attend(model, text, lambda weights, mask: weights[:, :1])


def test_a_report_is_of_a_result_a_record_or_folders(model, corpus, tmp_path):
    result = assay.audit(model, corpus, FEW, ["truth"], limit=8)
    made = assay.report(result, out=tmp_path / "one.md")
    assert made.path.read_text(encoding="utf-8").startswith("#")
    assert str(result) in str(made) or "truth" in str(made)
    for name in "ab":
        result.save(tmp_path / name)
    assert assay.report(tmp_path / "a", tmp_path / "b", out=tmp_path / "two.html").path.exists()
    with pytest.raises(AssayError, match="A report is of a folder"):
        assay.report(3)


def test_a_verb_is_never_hidden_by_the_folder_of_its_name():
    for name in ("influence", "report", "serve", "study"):
        importlib.import_module(f"assay.{name}")
        assert callable(getattr(assay, name)), name
    assert importlib.import_module("assay.influence").METHODS is assay.METHODS


def test_a_name_of_ours_is_not_given_to_another(model):
    def lime(model, batch, target):
        return batch.mask.float()

    with pytest.raises(AssayError, match="There is an explainer 'lime' already"):
        AuditPlan.of([lime])
    assert AuditPlan.of([EXPLAINERS["leave_one_out"]]).explainers == ("leave_one_out",)


def test_names_in_one_string_are_told_apart(model):
    assert list(assay.explain(model, "a film", "attention, random").scores) == ["attention", "random"]
    assert AuditPlan.of("lime(samples=50, removal=mask),random").explainers == (
        "lime(samples=50, removal=mask)",
        "random",
    )


def test_a_result_is_written_in_the_form_that_its_name_ends_in(model, corpus, tmp_path):
    result = assay.audit(model, corpus, FEW, ["truth"])
    assert "<html" in result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert result.report(str(tmp_path / "REPORT.MD")).read_text(encoding="utf-8").startswith("#")
    with pytest.raises(AssayError, match=r"names no form of report; let it end in \.html"):
        result.report(tmp_path / "report.docx")
    drawn = result.figures(tmp_path / "figures")
    assert drawn
    assert all("<svg" in path.read_text(encoding="utf-8") for path in drawn)
    assert same(result, Result(assay.Record.read(result.save(tmp_path / "run"))))


def test_the_public_names_are_few():
    assert len(assay.__all__) <= 41
