"""The verbs in Python, on transformers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import assay
from assay.errors import AssayError
from assay.models.hf_loading import silent
from assay.models.hf_models import SubwordPretrained
from tests import pretrained
from tests.models.test_finetuning import corpus

FEW = ["attention", "occlusion"]


@pytest.fixture
def theirs():
    return pretrained.inner("bert", classes=2, dtype=torch.float32)


@pytest.fixture
def folder(theirs, tmp_path):
    with silent():
        theirs.save_pretrained(tmp_path / "theirs")
        pretrained.tokenizer().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_a_model_at_hand_and_the_same_from_a_folder_are_explained_alike(theirs, folder):
    before = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    here = assay.load(theirs, tokenizer=pretrained.tokenizer())
    there = assay.load(folder)
    one, other = (assay.explain(model, "not a good film", FEW) for model in (here, there))
    assert one.scores["occlusion"] == pytest.approx(other.scores["occlusion"], abs=1e-6)
    assert one.words == ["not", "a", "good", "film"]
    assert here.network.inner is theirs
    assert all(torch.equal(tensor, before[name]) for name, tensor in theirs.state_dict().items())
    assert theirs.config._attn_implementation == "sdpa"
    pipeline = SimpleNamespace(model=theirs, tokenizer=pretrained.tokenizer())
    assert assay.explain(pipeline, "not a good film", FEW) == one
    wrapped = assay.wrap(theirs, pretrained.tokenizer(), ["no", "yes"])
    assert wrapped.classes == ("no", "yes")


def test_the_answer_is_that_of_the_library(theirs):
    model = assay.load(theirs, tokenizer=pretrained.tokenizer())
    text = "An unwatchable film, is it not?"
    with torch.no_grad():
        expected = theirs(**pretrained.tokenizer()(text, return_tensors="pt")).logits.softmax(-1)[0]
    found = assay.explain(model, text, ["random"]).probabilities
    assert list(found.values()) == pytest.approx(expected.tolist(), abs=1e-6)


def test_options_say_how_a_transformer_is_read(folder):
    assert isinstance(assay.load(folder, words=False).network, SubwordPretrained)
    assert assay.load(folder, dtype="bfloat16").network.inner.dtype == torch.bfloat16
    assert assay.load(folder, classes=("no", "yes")).classes == ("no", "yes")
    with pytest.raises(AssayError, match="Unknown precision"):
        assay.load(folder, dtype="float8")


def test_several_devices_give_the_same_scores(folder):
    one, two = assay.load(folder), assay.load(folder, device="cpu,cpu")
    texts = ("not a good film", "dull", "a very long film, is it not?")
    for text in texts:
        alone, shared = (assay.explain(model, text, [*FEW, "gradient", "lrp"]) for model in (one, two))
        for name, scores in alone.scores.items():
            assert shared.scores[name] == pytest.approx(scores, abs=1e-6), name
    assert type(two.network).__name__ == "ParallelPretrained"


def test_a_fine_tuned_model_is_audited(folder, tmp_path):
    model = assay.finetune(corpus(), str(folder), tmp_path / "out", epochs=1, batch_size=16, seed=1)
    assert model.history["finetuning"]["training"]["seed"] == 1
    result = assay.audit(model, corpus().test, FEW, ["agreement", "erasure"], corpus=corpus())
    assert {finding.audit for finding in result.findings} == {"agreement", "erasure"}
    with pytest.raises(AssayError, match="Unknown option"):
        assay.finetune(corpus(), str(folder), epoch=1)


def test_what_is_no_transformer_takes_no_such_options(tmp_path):
    with pytest.raises(AssayError, match="no transformer"):
        assay.load(tmp_path, words=False)
