"""Negations with their cues and scopes, from small invented files in the format of the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.data.annotated import Negated, Negation, negated, read_negated, written
from assay.errors import AssayError


def lines(words: str, *negations: str) -> str:
    """A sentence in columns; a negation has a letter for each word: c(ue), s(cope), b(oth), or a point for neither."""
    rows = []
    for place, word in enumerate(words.split()):
        row = ["story", "0", str(place), word, word, "X", "*"]
        for marks in negations:
            mark = marks[place]
            row += [word if mark in "cb" else "_", word if mark in "sb" else "_", "_"]
        rows.append("\t".join(row if negations else [*row, "***"]))
    return "\n".join(rows) + "\n\n"


def read(folder: Path, *sentences: str) -> tuple[Negated, ...]:
    path = folder / "invented.txt"
    path.write_text("".join(sentences), encoding="utf-8")
    return read_negated(path)


def test_only_sentences_with_negations_are_kept_with_their_cues_and_scopes(tmp_path: Path) -> None:
    found = read(tmp_path, lines("He sings ."), lines("I did n't see the impossible .", "sscsss.", "....sb."))
    assert len(found) == 1
    assert found[0].negations == (Negation((2,), (0, 1, 3, 4, 5)), Negation((5,), (4,)))
    assert found[0].text == "I didn't see the impossible."


def test_words_stand_where_they_are_said_to_in_the_text() -> None:
    words = ("``", "It", "'s", "(", "not", ")", "Ada", "'", "cat", ",", "''", "said", "he", ".")
    text, spans = written(words)
    assert text == "``It's (not) Ada' cat,'' said he."
    assert tuple(text[start:end] for start, end in spans) == words


def test_rows_of_different_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match=r"rows of different length near .*; fetch it again"):
        read(tmp_path, lines("No .", "c.").replace("\t.\t.", "\t."))


def test_without_a_local_copy_one_sentence_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    with pytest.raises(AssayError, match="set ASSAY_DATA to a folder that holds negation_conan_doyle/"):
        negated("test")


@pytest.mark.data
@pytest.mark.parametrize(
    "split, sentences, cues", [("train", 848, 984), ("dev", 144, 173), ("test", 235, 264)]
)  # as published
def test_the_corpus_has_the_published_counts(split: str, sentences: int, cues: int) -> None:
    found = negated(split)
    assert (len(found), sum(len(each.negations) for each in found)) == (sentences, cues)
