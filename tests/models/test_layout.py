"""What a transformer is given, against what its own tokenizer makes of the same texts."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor, nn

from assay.data.batches import collate, tokenise
from assay.data.examples import Example
from assay.models.hf_body import Sequence, Template, sequence
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser
from assay.types import Batch
from tests.pretrained import tokenizer as bert_tokenizer

LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "▁", *"abcdefgh", "ab", "cd", "▁a", "gh"]
TEMPLATES: dict[str, tuple[str, str] | None] = {
    "none": None,  # GPT-2
    "roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "llama": ("<s> $A", "<s> $A <s>:1 $B:1"),
    "t5": ("$A </s>", "$A </s> $B </s>"),
    "xlnet": ("$A </s> <s>:2", "$A </s> $B:1 </s>:1 <s>:2"),
}
KINDS = ("bert", *TEMPLATES)
EVERY = pytest.mark.parametrize("kind", KINDS)


@cache
def tokenizer(kind: str, split: bool = True) -> Any:
    if kind == "bert":
        return bert_tokenizer()
    merges = [("a", "b"), ("c", "d"), ("g", "h"), *([("▁", "a")] if split else [])]
    inner = Tokenizer(
        models.BPE({subword: number for number, subword in enumerate(LETTERS)}, merges, unk_token="<unk>")
    )
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    template = TEMPLATES[kind]
    if template is not None:
        inner.post_processor = processors.TemplateProcessing(
            single=template[0], pair=template[1], special_tokens=[("<s>", 1), ("</s>", 2)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def texts(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    words = ["abba", "deaf cab", "gh", "a", "head", "cd, ab", "unwatchable"]
    return [" ".join(generator.choices(words, k=generator.randint(1, 6))) for _ in range(count)]


def batch_of(given: list[str], queries: list[str] | None, kind: str, words: bool, split: bool = True) -> Batch:
    asked = queries or [None] * len(given)  # type: ignore[list-item]
    examples = [Example(text, 0, query=query) for text, query in zip(given, asked, strict=True)]
    rows, _ = tokenise(examples, SubwordTokeniser(tokenizer(kind, split), SubwordOptions(500, words)), 500)
    return collate(rows)


def numbered(kind: str) -> nn.Embedding:
    """A table in which the embedding of each subword is its id."""
    table = nn.Embedding(len(tokenizer(kind)), 1).double()
    table.weight.data = torch.arange(len(tokenizer(kind))).double()[:, None]
    return table


def laid_out(batch: Batch, kind: str, left: bool = False, split: bool = True) -> Sequence:
    table = numbered(kind)
    subwords = batch.ids[..., None] if batch.subwords is None else batch.subwords
    template = Template.of(tokenizer(kind, split), batch.query is not None)
    return sequence(table(subwords.clamp(min=0)).flatten(2), batch, template, table, left)


def ids(laid: Sequence, pad: int) -> Tensor:
    return laid.embeddings[..., 0].long().where(laid.mask, pad)


@EVERY
@pytest.mark.parametrize("paired", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("words", [True, False], ids=["words", "pieces"])
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
@pytest.mark.parametrize("split", [True, False])
def test_ids_types_and_order_are_the_tokenizers(kind: str, paired: bool, words: bool, left: bool, split: bool) -> None:
    given, queries = texts(9, 0), texts(9, 1) if paired else None
    laid = laid_out(batch_of(given, queries, kind, words, split), kind, left, split)
    reading = tokenizer(kind, split)
    asked = [] if queries is None else [queries]
    side = "left" if left else "right"
    expected = reading(given, *asked, padding=True, padding_side=side, return_tensors="pt", return_token_type_ids=True)
    assert torch.equal(ids(laid, reading.pad_token_id), expected["input_ids"])
    assert torch.equal(laid.mask, expected["attention_mask"].bool())
    assert torch.equal(laid.types.where(laid.mask, 0), expected["token_type_ids"].where(laid.mask, 0))


@EVERY
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_each_place_belongs_to_the_word_whose_piece_stands_there(kind: str, left: bool) -> None:
    batch = batch_of(texts(9, 0), texts(9, 1), kind, words=True)
    assert batch.subwords is not None
    laid = laid_out(batch, kind, left)
    for row in range(9):
        subwords = [
            (word, int(subword)) for word, each in enumerate(batch.subwords[row]) for subword in each if subword >= 0
        ]
        found = [
            (int(word), int(subword))
            for word, subword in zip(laid.token_index[row], laid.embeddings[row, :, 0], strict=True)
            if word >= 0
        ]
        assert found == subwords
    assert (laid.token_index[~laid.mask] == -1).all()


@EVERY
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_what_is_deleted_leaves_no_gap(kind: str, left: bool) -> None:
    batch = batch_of(texts(9, 0), texts(9, 1), kind, words=True)
    assert batch.subwords is not None
    kept = batch.mask & (torch.arange(batch.ids.shape[1]) % 3 != 0)
    whole, fewer = laid_out(batch, kind, left), laid_out(replace(batch, mask=kept), kind, left)
    for row in range(9):
        stays = [
            bool(real) and (int(place) < 0 or bool(kept[row, place]))
            for real, place in zip(whole.mask[row], whole.token_index[row], strict=True)
        ]
        for part in ("embeddings", "types", "token_index"):
            before, after = getattr(whole, part)[row], getattr(fewer, part)[row]
            assert torch.equal(after[fewer.mask[row]], before[torch.tensor(stays)])
    assert fewer.mask.any(0).all()  # no place is padding in every row


@EVERY
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_a_text_of_which_nothing_is_left_is_still_read(kind: str, left: bool) -> None:
    batch = batch_of(texts(3, 0), None, kind, words=True)
    reading = tokenizer(kind)
    for gone in (torch.tensor([True, False, True]), torch.tensor([True, True, True])):
        laid = laid_out(replace(batch, mask=batch.mask & ~gone[:, None]), kind, left)
        template = Template.of(reading, False)
        expected = [*template.before, *template.between, *template.after] or [reading.pad_token_id]
        for row in gone.nonzero().flatten():
            assert laid.embeddings[row, laid.mask[row], 0].tolist() == expected
            assert (laid.token_index[row] == -1).all()


def test_shares_are_equal_among_the_pieces_of_a_word() -> None:
    batch = batch_of(texts(4, 0), None, "bert", words=True)
    laid, tokens = laid_out(batch, "bert"), batch.ids.shape[1]
    owners, shares = laid.owners(tokens), laid.shares(tokens)
    for row in range(4):
        for word in range(tokens):
            places = [place for place in range(laid.token_index.shape[1]) if laid.token_index[row, place] == word]
            assert owners[row, :, word].nonzero().flatten().tolist() == places
            assert shares[row, places, word].tolist() == pytest.approx([1 / len(places) for _ in places])
            assert float(shares[row, :, word].sum()) == pytest.approx(1.0 if places else 0.0)


def test_a_way_back_leads_through_pieces_that_were_first_met_without_one() -> None:
    batch = batch_of(texts(3, 0), None, "roberta", words=True)
    with torch.inference_mode():
        laid_out(batch, "roberta")
    embeddings = laid_out(batch, "roberta").embeddings
    embeddings.sum().backward()
    assert embeddings.requires_grad


def test_templates_are_found_out_from_the_tokenizer() -> None:
    assert Template.of(tokenizer("none"), True).specials == 0
    roberta = Template.of(tokenizer("roberta"), True)
    assert (roberta.before, roberta.between, roberta.after) == ((1,), (2, 2), (2,))
    bert = Template.of(tokenizer("bert"), True)
    assert bert.types == ((0,), (0,), (0,), (1,), (1,))
    assert Template.of(tokenizer("xlnet"), False).types == ((), (0,), (), (), (0, 2))
