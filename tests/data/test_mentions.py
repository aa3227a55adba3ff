"""Pronouns and names, from small invented files in the format of the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.data.annotated import MENTION_COLUMNS as COLUMNS
from assay.data.annotated import Pronoun, mentions, read_mentions
from assay.errors import AssayError

TEXT = "Ada met Bea, and she sang."


def row(first: str, second: str, at: int = 17) -> str:
    return "\t".join(("x-1", TEXT, "she", str(at), "Ada", "0", first, "Bea", "8", second, "http://x"))


def read(folder: Path, *rows: str) -> tuple[Pronoun, ...]:
    path = folder / "invented.tsv"
    path.write_text("\n".join(("\t".join(("ID", *COLUMNS, "URL")), *rows)) + "\n", encoding="utf-8")
    return read_mentions(path)


def test_pronouns_that_stand_for_neither_or_both_are_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, row("TRUE", "FALSE"), row("FALSE", "FALSE"), row("FALSE", "TRUE"), row("TRUE", "TRUE"))
    assert [each.right for each in found] == [0, 1]
    assert found[0] == Pronoun(TEXT, (17, 20), ((0, 3), (8, 11)), 0)


def test_a_name_that_does_not_stand_where_it_is_said_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match=r"has no 'she' at character 16 .*; fetch it again"):
        read(tmp_path, row("TRUE", "FALSE", at=16))


def test_without_a_local_copy_one_sentence_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    with pytest.raises(AssayError, match="set ASSAY_DATA to a folder that holds gap/gap-test"):
        mentions("test")


@pytest.mark.data
@pytest.mark.parametrize("split, count", [("dev", 1799), ("test", 1773)])
def test_the_corpus_is_read_whole(split: str, count: int) -> None:
    assert len(mentions(split)) == count
