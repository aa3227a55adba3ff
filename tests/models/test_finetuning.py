"""Fine-tuning of small random encoders: what is learnt, what is kept, and what goes on after an interruption."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.data.batches import collate, tokenise
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.models import hf_finetuning as finetuning
from assay.models.config import Training
from assay.models.hf_finetuning import FineTuning, finetune
from assay.models.hf_loading import HEAD, Opening, opened, silent
from assay.types import PooledModel
from tests import pretrained

STEPS = Training(epochs=8, patience=8, batch_size=8, learning_rate=5e-3, decay=0.0, clip=1.0)


@pytest.fixture
def base(tmp_path):
    made = pretrained.inner("bert", dtype=torch.float32)
    with silent():
        made.save_pretrained(tmp_path / "base")
        pretrained.tokenizer().save_pretrained(tmp_path / "base")
    return str(tmp_path / "base")


def corpus(rows: int = 120) -> Corpus:
    """One word tells the class."""
    words = ("dull", "fun")
    every = tuple(
        Example(f"this {'very ' * (row % 4)}long film is {words[row % 2]} {'a' * (row % 5)}", row % 2)
        for row in range(rows)
    )
    return Corpus("invented", ("bad", "good"), every[: rows - 40], every[rows - 40 : rows - 20], every[rows - 20 :])


def logits(model, examples):
    rows, _ = tokenise(examples, model.tokeniser, 60)
    batch = collate(rows, 2)
    with torch.no_grad():
        return model.network(model.network.embed(batch), batch).logits


@pytest.mark.parametrize("head", finetuning.HEADS)
@pytest.mark.parametrize("dtype", finetuning.PRECISIONS)
def test_an_easy_task_is_learnt_and_the_stored_model_answers_alike(base, tmp_path, head, dtype):
    recipe = FineTuning(base=base, head=head, dtype=dtype, training=STEPS)
    model = finetune(corpus(), recipe, tmp_path / "out")
    answers = logits(model, corpus().test)
    assert (answers.argmax(-1) == torch.tensor([example.label for example in corpus().test])).all()
    again = finetune(corpus(), recipe, tmp_path / "out")
    assert torch.equal(logits(again, corpus().test), answers)
    assert not model.network.training and model.history["best_dev"] == 1.0
    assert isinstance(model.network, PooledModel) == (head == "attention")
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()


def test_a_frozen_encoder_stays_as_it_is(base):
    before = pretrained.inner("bert", dtype=torch.float32).base_model.state_dict()
    for head in finetuning.HEADS:
        model = finetune(corpus(), FineTuning(base=base, head=head, frozen=True, training=replace(STEPS, epochs=1)))
        after = model.network.inner.base_model.state_dict()
        kept = {name for name in after if torch.equal(after[name], before[name])}
        learnt = set(after) - kept
        assert all("pooler" in name for name in learnt) and kept


def test_an_interrupted_training_goes_on_to_the_same_weights(base, tmp_path, monkeypatch):
    recipe = FineTuning(base=base, training=STEPS)
    whole = finetune(corpus(), recipe, tmp_path / "whole")
    judged = finetuning.Answers.judged

    def stopping(self, network, rows):
        if (tmp_path / "cut" / "checkpoint.safetensors").exists():
            raise KeyboardInterrupt
        return judged(self, network, rows)

    monkeypatch.setattr(finetuning.Answers, "judged", stopping)
    with pytest.raises(KeyboardInterrupt):
        finetune(corpus(), recipe, tmp_path / "cut")
    monkeypatch.setattr(finetuning.Answers, "judged", judged)
    resumed = finetune(corpus(), recipe, tmp_path / "cut")
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name
    with pytest.raises(AssayError, match="other options"):
        finetune(corpus(), replace(recipe, training=replace(STEPS, seed=1)), tmp_path / "cut")


def test_a_seed_decides_the_new_head(base):
    one, same, other = (
        finetune(corpus(60), FineTuning(base=base, training=replace(STEPS, epochs=1, seed=seed))) for seed in (0, 0, 1)
    )
    assert torch.equal(logits(one, corpus().test), logits(same, corpus().test))
    assert not torch.equal(logits(one, corpus().test), logits(other, corpus().test))


def test_options_that_do_not_exist_are_refused():
    for wrong in ({"head": "hat"}, {"dtype": "float8"}):
        with pytest.raises(AssayError, match="Unknown"):
            FineTuning(**wrong)


def test_a_damaged_attention_is_told_and_its_classes_can_be_renamed(base, tmp_path):
    steps = replace(STEPS, epochs=1)
    finetune(corpus(60), FineTuning(base=base, head="attention", training=steps), tmp_path / "out")
    assert opened(str(tmp_path / "out"), Opening(classes=("no", "yes"))).classes == ("no", "yes")
    with pytest.raises(AssayError, match="2 classes"):
        opened(str(tmp_path / "out"), Opening(classes=("no",)))
    stored = tmp_path / "out" / HEAD
    for damage in (stored.read_bytes()[:200], b"nothing"):
        stored.write_bytes(damage)
        with pytest.raises(AssayError, match=r"attention\.safetensors is damaged"):
            opened(str(tmp_path / "out"))
