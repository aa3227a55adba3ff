"""Sentences as a reader would cut them."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.data.batches import collate, tokenise
from assay.data.examples import Example
from assay.data.text import TextOptions, Tokeniser, sentence_numbers

TOKENISER = Tokeniser.fit(["a"], TextOptions(min_count=1))


def numbers(text):
    return sentence_numbers(text, TOKENISER([text])[0].spans)


def sentences(text):
    spans = TOKENISER([text])[0].spans
    found = sentence_numbers(text, spans)
    cut = [[span for span, number in zip(spans, found, strict=True) if number == n] for n in dict.fromkeys(found)]
    return [text[words[0][0] : words[-1][1]] for words in cut]


@pytest.mark.parametrize(
    "expected",
    [
        ["It was good.", "I agree!!", "Was it?", "Then 3.5 stars"],
        ['He said "no."', "“Why?”", "(He did not say.)", "Well…", "so"],
        ["great . . .", "or not ! ?", "good ( or so . )", "fine"],
        ["One.Two and v1.2.", "three"],
        ["a film"],
        [],
    ],
)
def test_sentences_end_after_their_marks(expected):
    assert sentences(" ".join(expected)) == expected


def test_a_sentence_never_goes_beyond_its_line():
    assert sentences("no mark here\nnor here\n\n . and on") == ["no mark here", "nor here", ".", "and on"]
    assert sentences("first.\nsecond") == ["first.", "second"]


def test_a_straight_quotation_mark_after_white_space_opens_the_next_sentence():
    assert sentences("He left. \"Why?\" 'So.' Yes") == ["He left.", '"Why?"', "'So.'", "Yes"]


@pytest.mark.parametrize("text", ["I met Mr. Kay and Dr. Low.", "St. Ives vs. Bath", "mrs . Kay"])
def test_a_title_ends_no_sentence(text):
    assert sentences(text) == [text]
    assert sentences(f"{text[:-1]}. He is first. It is") == [f"{text[:-1]}.", "He is first.", "It is"]


@given(st.text("ab .!?\"')\n”", max_size=30))
def test_numbers_start_at_0_and_never_skip(text):
    found = numbers(text)
    assert found[:1] in ([], [0])
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(found))


@given(st.lists(st.sampled_from(["Good film.", "Bad!", "so (it) is?", "really..."]), min_size=1, max_size=6))
def test_sentences_side_by_side_are_cut_where_they_were_joined(parts):
    assert sentences(" ".join(parts)) == parts
    assert sentences("\n".join(parts)) == parts


def test_a_batch_has_the_sentence_of_each_token():
    rows, _ = tokenise([Example("Bad. So bad.", 0), Example("good", 1)], TOKENISER, 10)
    batch = collate(rows)
    assert batch.sentences is not None
    assert batch.sentences[0].tolist() == [0, 0, 1, 1, 1]
    assert torch.equal(batch.sentences * batch.mask, batch.sentences)
