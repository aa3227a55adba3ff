"""Sentences by template."""

from __future__ import annotations

from assay.rationales.templates import clause, joined, says

TEXT = 'a "truly" dull film , badly acted and long'


def where(*words: str) -> list[tuple[int, int]]:
    return [(TEXT.index(word), TEXT.index(word) + len(word)) for word in words]


def test_neighbours_are_quoted_as_one_and_quotation_marks_inside_are_single() -> None:
    spans = where("film", '"truly"', "dull", "long")
    assert says("negative", TEXT, spans) == "I answer negative because it says “'truly' dull film” and “long”."


def test_three_stretches_are_listed() -> None:
    spans = where("dull", "badly", "long")
    assert says("negative", TEXT, spans) == "I answer negative because it says “dull”, “badly”, and “long”."


def test_what_it_reminds_of_follows() -> None:
    landmark = "I answer negative because it reminds me of “a bore”, which is also negative."
    both = says("negative", TEXT, where("dull"), clause(landmark))
    assert both == (
        "I answer negative because it says “dull”, and because it reminds me of “a bore”, which is also negative."
    )
    assert says("negative", TEXT, [], clause(landmark)) == landmark


def test_a_rationale_without_words_says_so() -> None:
    assert says("negative", TEXT, []) == "I answer negative, and nothing in it says why."
    assert says("negative", TEXT, [(1, 2)]) == "I answer negative, and nothing in it says why."


def test_overlapping_spans_are_one() -> None:
    assert joined("abcdef gh", [(2, 5), (0, 3), (7, 9)]) == [(0, 5), (7, 9)]


def test_a_long_stretch_is_cut() -> None:
    text = " ".join(f"word{place}" for place in range(30))
    assert says("x", text, [(0, len(text))]).endswith("word19 …”.")
