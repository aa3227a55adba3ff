"""Versions of texts against reading each by itself, with its words removed by hand."""

from __future__ import annotations

import pytest
import torch

from assay.errors import AssayError
from assay.models import budget
from assay.models.encoders import ENCODERS
from assay.models.erasure import REMOVALS, baseline, kept_probabilities, version_probabilities
from assay.types import BLANKS, Batch, Query
from tests import builders


def versions(batch, count=9, seed=1):
    """Random sets of tokens, the first empty, the second whole, padding among them at random."""
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(len(batch), count, batch.ids.shape[1], generator=generator) < 0.6
    kept[:, 0], kept[:, 1] = False, True
    return kept


def by_hand(model, ids, kept, removal):
    """The answer for one text of which only the kept tokens are left."""
    if removal == "delete":
        ids = ids[kept]
        if not len(ids):
            return model.decoder.bias.softmax(-1)
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    x = model.embed(batch).clone()
    if removal != "delete":
        x[0, ~kept] = blank_by_hand(model, removal)
    return model(x, batch).probabilities[0]


def blank_by_hand(model, name):
    table = model.embedding.weight
    return {"zero": torch.zeros(6).to(table), "pad": table[0], "mask": table[1], "mean": table[4:].mean(0)}[name]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("markers", [False, True])
@torch.no_grad()
def test_each_version_is_read_as_if_it_stood_alone(encoder, removal, markers):
    model = builders.model(encoder=encoder, markers=markers, classes=3)
    model.embedding.weight[0] = 0.3  # so that padding is not the origin
    batch = builders.batch((7, 1, 4, 12), width=14)
    kept = versions(batch)
    found = kept_probabilities(model, batch, kept, removal)
    for row, number in batch.mask.new_ones(kept.shape[:2]).nonzero().tolist():
        real = batch.mask[row]
        expected = by_hand(model, batch.ids[row, real], kept[row, number, real], removal)
        torch.testing.assert_close(found[row, number], expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kind", ["hierarchical-gru", "hierarchical-none", "paired-lstm", "paired-average"])
@pytest.mark.parametrize("removal", ["delete", "mean"])
def test_a_version_has_the_sentences_of_its_words_and_the_question_of_its_text(kind, removal):
    model, batch = builders.kind(kind, classes=3), builders.texts(width=14)
    kept = versions(batch)
    found = kept_probabilities(model, batch, kept, removal)
    for row, number in batch.mask.new_ones(kept.shape[:2]).nonzero().tolist():
        words, read = batch.mask[row], batch.query.mask[row]
        left = words & kept[row, number] if removal == "delete" else words
        ids, sentences = batch.ids[row, left][None], batch.sentences[row, left][None]
        if not ids.numel():
            torch.testing.assert_close(found[row, number], model.decoder.bias.softmax(-1))
            continue
        query = Query(batch.query.ids[row, read][None], torch.ones(1, int(read.sum())).bool())
        alone = Batch(ids, torch.ones_like(ids).bool(), torch.zeros(1).long(), query, sentences=sentences)
        x = model.embed(alone).clone()
        x[0, ~kept[row, number, left]] = blank_by_hand(model, "mean")
        torch.testing.assert_close(found[row, number], model(x, alone).probabilities[0], atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("removal", REMOVALS)
def test_versions_may_be_of_any_examples_in_any_order(removal):
    model, batch = builders.model(), builders.batch()
    kept = versions(batch)
    table = kept_probabilities(model, batch, kept, removal)
    example, number = torch.tensor([3, 0, 3, 1, 0]), torch.tensor([4, 2, 8, 0, 3])
    found = version_probabilities(model, batch, example, kept[example, number], removal)
    torch.testing.assert_close(found, table[example, number])


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("tokens", [1, 13, 40])
def test_the_number_read_at_once_changes_nothing(removal, tokens, monkeypatch):
    model, batch = builders.model(), builders.batch()
    kept = versions(batch)
    at_once = kept_probabilities(model, batch, kept, removal)
    sizes = []
    monkeypatch.setitem(budget.ROOM, "versions", (tokens, tokens))
    model.register_forward_pre_hook(lambda module, inputs: sizes.append(tuple(inputs[0].shape[:2])))
    torch.testing.assert_close(kept_probabilities(model, batch, kept, removal), at_once)
    assert all(rows * width <= max(tokens, width) for rows, width in sizes)
    assert sum(rows for rows, _ in sizes) == kept.shape[0] * kept.shape[1]


def test_deleted_tokens_are_not_read_at_all():
    model, batch = builders.model(), builders.batch()
    widths = []
    model.register_forward_pre_hook(lambda module, inputs: widths.append(inputs[0].shape[1]))
    kept = batch.mask[:, None] & (torch.arange(12) % 4 == 0)
    kept_probabilities(model, batch, kept)
    assert widths == [3]


def test_the_second_text_of_a_pair_and_the_sentences_go_with_each_version():
    model, batch = builders.model(), builders.batch()
    asked = Query(torch.arange(8).reshape(4, 2), torch.ones(4, 2, dtype=torch.bool))
    paired = Batch(batch.ids, batch.mask, batch.labels, asked, batch.mask, batch.ids * 2)
    seen = []

    class Spy:
        vectors, ordinary, blank = model.vectors, model.ordinary, staticmethod(model.blank)

        def embed(self, batch):
            return model.embed(batch)

        def __call__(self, x, batch, edit=None):
            seen.append(batch)
            return model(x, batch)

    for removal in ("delete", "zero"):
        kept_probabilities(Spy(), paired, versions(paired), removal)
        (read,) = seen
        assert len(read) == 36
        assert torch.equal(read.sentences, read.ids * 2)
        owner = read.query.ids[:, 0] // 2
        assert torch.equal(read.query.ids, asked.ids[owner])
        assert all(set(ids.tolist()) <= set(batch.ids[row].tolist()) for ids, row in zip(read.ids, owner, strict=True))
        seen.clear()


@pytest.mark.parametrize("removal", REMOVALS)
def test_half_precision_gives_single_probabilities(removal):
    model, batch = builders.model(dtype=torch.bfloat16), builders.batch()
    found = kept_probabilities(model, batch, versions(batch), removal)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.sum(-1), torch.ones(4, 9))


def test_no_gradient_is_kept():
    model, batch = builders.model(), builders.batch()
    assert not kept_probabilities(model, batch, versions(batch)).requires_grad


@pytest.mark.parametrize("name", BLANKS)
def test_a_baseline_is_the_blank_at_each_place(name):
    model, batch = builders.model(), builders.batch()
    found = baseline(model, batch, name)
    assert found.shape == model.embed(batch).shape
    assert (found == blank_by_hand(model, name)).all()


def test_unknown_names_and_models_without_a_table_are_refused_in_one_sentence():
    model, batch = builders.model(), builders.batch()
    with pytest.raises(AssayError, match="Unknown removal 'blank'"):
        kept_probabilities(model, batch, versions(batch), "blank")
    with pytest.raises(AssayError, match="Unknown baseline 'delete'"):
        baseline(model, batch, "delete")

    class Tableless:
        def embed(self, batch):
            return model.embed(batch)

        def __call__(self, x, batch, edit=None):
            return model(x, batch)

    with pytest.raises(AssayError, match="no table of embeddings"):
        kept_probabilities(Tableless(), batch, versions(batch), "mean")
    deleted = kept_probabilities(Tableless(), batch, versions(batch))
    torch.testing.assert_close(deleted, kept_probabilities(model, batch, versions(batch)))
