"""Texts of two lines as pairs: nothing is lost, and marks go with their line."""

from __future__ import annotations

import pytest

from assay.data.examples import Corpus, Example, joined, parted
from assay.errors import AssayError


def corpus(*examples: Example) -> Corpus:
    return Corpus("mine", ("no", "yes"), examples, examples[:1], examples[:1], {"no text": 3})


def test_the_second_line_is_the_query_and_marks_go_with_their_line() -> None:
    loaded = parted(corpus(Example("Ada ran.\nWho ran?", 1, ((0, 3), (4, 7), (9, 12), (13, 16)))))
    assert loaded.name == "mine+parted" and loaded.skipped == {"no text": 3}
    (example,) = loaded.train
    assert (example.text, example.query) == ("Ada ran.", "Who ran?")
    assert [example.text[start:end] for start, end in example.evidence or ()] == ["Ada", "ran"]
    assert [str(example.query)[start:end] for start, end in example.query_evidence] == ["Who", "ran"]
    assert (loaded.train, loaded.train) == (loaded.dev, loaded.test)


def test_a_mark_over_both_lines_is_parted_too() -> None:
    (example,) = parted(corpus(Example("Ada ran.\nWho ran?", 1, ((4, 12),)))).train
    assert example.evidence == ((4, 8),) and example.query_evidence == ((0, 3),)


def test_unknown_evidence_stays_unknown() -> None:
    (example,) = parted(corpus(Example("Ada ran.\nWho ran?", 1))).train
    assert example.evidence is None and example.query_evidence == ()


def test_joined_pairs_can_be_parted_again() -> None:
    pair = Example("Ada ran.", 1, ((0, 3),), "Who ran?", query_evidence=((4, 7),))
    (example,) = parted(joined(corpus(pair))).train
    assert (example.text, example.query) == (pair.query, pair.text)
    assert (example.evidence, example.query_evidence) == (pair.query_evidence, pair.evidence)


@pytest.mark.parametrize("text", ["Ada ran.", "Ada ran.\n", "a\nb\nc"])
def test_other_texts_and_pairs_are_refused(text: str) -> None:
    with pytest.raises(AssayError, match="each has two lines"):
        parted(corpus(Example("a\nb", 1), Example(text, 1)))
    with pytest.raises(AssayError, match="no question yet"):
        parted(corpus(Example("a\nb", 1, None, "c")))
