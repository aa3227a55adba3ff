"""Words, offsets and batches."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st

from assay.data.batches import by_tokens, collate, shuffled, tokenise
from assay.data.examples import Example
from assay.data.text import SPECIAL, TextOptions, Tokeniser

TEXTS = [
    "The film isn't bad, it's great!",
    "A bad film; 1999 was better than the 2nd.",
    "bad   films\n\tbore me 😀",
]


def words(tokeniser, text):
    return [text[start:end] for start, end in tokeniser([text])[0].spans]


def test_words_are_shown_as_written():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions(min_count=1))
    assert words(tokeniser, TEXTS[0]) == ["The", "film", "is", "n't", "bad", ",", "it", "'s", "great", "!"]
    assert words(tokeniser, TEXTS[2]) == ["bad", "films", "bore", "me", "😀"]


def test_rare_and_new_words_are_unknown():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions(min_count=2))
    assert tokeniser.vocabulary[:4] == list(SPECIAL)
    assert "bad" in tokeniser.vocabulary
    assert "great" not in tokeniser.vocabulary
    assert tokeniser(["bad wombat great"])[0].ids[1:] == [1, 1]


def test_case_is_folded_only_when_asked():
    folded, kept = (Tokeniser.fit(TEXTS, TextOptions(lowercase=flag, min_count=1)) for flag in (True, False))
    assert folded(["The"]) == folded(["the"])
    assert kept(["A"]) != kept(["a"])


def test_words_with_digits_are_one_word_and_keep_their_offsets():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions(fold_digits=True, min_count=1))
    text = "In 2031 the 2nd b52 came"
    found = tokeniser([text])[0]
    assert words(tokeniser, text) == ["In", "2031", "the", "2nd", "b52", "came"]
    assert len({found.ids[place] for place in (1, 3, 4)}) == 1
    assert tokeniser.vocabulary[found.ids[1]] == "qqq"
    assert not any(character.isdigit() for word in tokeniser.vocabulary for character in word)


CLOZE = "@entity12 's 2 cats met @entity3, who @placeholder @entities @entity a@b.c (@entity7)"


@pytest.mark.parametrize("fold", [True, False])
def test_what_stands_for_a_name_is_one_word(fold):
    tokeniser = Tokeniser.fit([CLOZE], TextOptions(min_count=1, fold_digits=fold))
    found = words(tokeniser, CLOZE)
    assert [word for word in found if word[0] == "@"] == [
        *("@entity12", "@entity3", "@placeholder"),
        *("@", "@", "@", "@entity7"),
    ]
    assert {"@entity12", "@entity3", "@entity7", "@placeholder"} <= set(tokeniser.vocabulary)
    spelled = [tokeniser.vocabulary[number] for number in tokeniser([CLOZE])[0].ids]
    assert spelled == [{"2": "qqq"}.get(word, word) if fold else word for word in found]


def test_an_entity_that_is_not_known_is_unknown_and_no_number():
    tokeniser = Tokeniser.fit([CLOZE], TextOptions(min_count=1, fold_digits=True))
    assert tokeniser(["@entity99 99 x@entity99"])[0].ids == [1, tokeniser.folded, 1, 1]


BEFORE_STAND_INS = r"\w+?(?=n['’]t\b)|n['’]t\b|['’](?:s|m|d|ll|re|ve)\b|\w+|[^\w\s]"


@example("@entity1x @entity_ @placeholders")
@given(st.text(st.sampled_from("@entiyplacholdr019 _x.'s\né😀"), max_size=40))
def test_other_texts_are_cut_as_if_there_were_no_stand_ins(text):
    assume(not re.search(r"@(entity\d+|placeholder)\b", text))
    plain = [found.span() for found in re.finditer(BEFORE_STAND_INS, text)]
    assert Tokeniser.fit(["a"], TextOptions())([text])[0].spans == plain


def test_a_stored_tokeniser_is_the_same():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions(fold_digits=True))
    again = Tokeniser.from_json(tokeniser.to_json(), tokeniser.options)
    assert again(TEXTS) == tokeniser(TEXTS)


def test_empty_and_overlong_texts_are_left_out_and_counted():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions())
    examples = [Example("", 0), Example(" \n", 1), Example("bad film", 0), Example("bad " * 11, 1)]
    rows, skipped = tokenise(examples, tokeniser, longest=10)
    assert [row.index for row in rows] == [2]
    assert skipped == {"no words": 2, "more than 10 words": 1}


def test_evidence_marks_the_words_that_it_touches():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions())
    rows, _ = tokenise([Example("not a good film", 0, ((0, 3), (6, 10))), Example("so bad", 1)], tokeniser, 10)
    batch = collate(rows)
    assert batch.truth is not None
    assert batch.truth.tolist() == [[True, False, True, False], [False] * 4]


def test_a_batch_is_padded_at_the_end():
    tokeniser = Tokeniser.fit(TEXTS, TextOptions(min_count=1))
    rows, _ = tokenise([Example(text, label) for label, text in enumerate(TEXTS)], tokeniser, 100)
    batch = collate(rows)
    for row, (ids, mask) in zip(rows, zip(batch.ids, batch.mask, strict=True), strict=True):
        assert torch.equal(ids[: len(row.ids)], row.ids)
        assert mask.tolist() == [True] * len(row.ids) + [False] * (len(ids) - len(row.ids))
    assert batch.labels.tolist() == [0, 1, 2]


def test_groups_are_bounded_by_tokens_and_hold_everything_once():
    lengths = np.random.default_rng(0).integers(1, 50, 300)
    groups = by_tokens(lengths, 128)
    assert sorted(np.concatenate(groups).tolist()) == list(range(300))
    assert all(len(group) * lengths[group].max() <= 128 for group in groups)
    assert len(groups) < 1.3 * lengths.sum() / 128 + 1
    assert [len(group) for group in by_tokens(np.array([500, 500]), 128)] == [1, 1]


def test_shuffled_groups_hold_everything_once_and_follow_the_seed():
    lengths = np.random.default_rng(0).integers(1, 50, 3333)
    groups = shuffled(lengths, 32, (0, 1))
    assert sorted(np.concatenate(groups).tolist()) == list(range(3333))
    assert all((one == other).all() for one, other in zip(groups, shuffled(lengths, 32, (0, 1)), strict=True))
    other = shuffled(lengths, 32, (0, 2))
    assert not all(len(a) == len(b) and (a == b).all() for a, b in zip(groups, other, strict=True))
    assert np.mean([np.ptp(lengths[group]) for group in groups]) < 5
