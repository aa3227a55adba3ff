"""Sentences of a treebank, from small invented files in the format of the real ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from assay.data.annotated import TREEBANK as FILES
from assay.data.annotated import Sentence, read_treebank, treebank
from assay.data.fetch import needed_copy
from assay.data.tables import read_text
from assay.errors import AssayError


def line(number: str, form: str, tag: str = "_", governor: str = "_", relation: str = "_", other: str = "_") -> str:
    return "\t".join((number, form, "_", tag, "_", "_", governor, relation, "_", other))


INVENTED = "\n".join(
    (
        "# text = Ada doesn't sing, du weißt.",
        line("1", "Ada", "PROPN", "4", "nsubj"),
        line("2-3", "doesn't"),
        line("2", "does", "AUX", "4", "aux"),
        line("3", "n't", "PART", "4", "advmod"),
        line("4", "sing", "VERB", "0", "root", "SpaceAfter=No"),
        line("4.1", "sang", "VERB", "_", "_"),
        line("5", ",", "PUNCT", "7", "punct", "Typo=Yes|SpaceAfter=No"),
        line("6-7", " du weißt".strip().replace(" ", "_")),
        line("6", "tu", "PRON", "7", "nsubj"),
        line("7", "sais", "VERB", "4", "parataxis"),
        "",
        line("1", "Stop", "VERB", "0", "root", "SpaceAfter=No"),
        line("2", "!", "PUNCT", "1", "punct"),
        "",
        "",
    )
)


def read(folder: Path, text: str) -> tuple[Sentence, ...]:
    path = folder / "invented.conllu"
    path.write_text(text, encoding="utf-8")
    return read_treebank(path)


def test_words_have_their_tags_governors_and_relations(tmp_path: Path) -> None:
    first, second = read(tmp_path, INVENTED)
    assert first.words == ("Ada", "does", "n't", "sing", ",", "tu", "sais")
    assert first.tags == ("PROPN", "AUX", "PART", "VERB", "PUNCT", "PRON", "VERB")
    assert first.governors == (3, 3, 3, -1, 6, 6, 3)
    assert first.relations == ("nsubj", "aux", "advmod", "root", "punct", "nsubj", "parataxis")
    assert (second.text, second.spans, second.governors) == ("Stop!", ((0, 4), (4, 5)), (-1, 0))


def test_the_text_is_as_written_and_words_stand_in_it(tmp_path: Path) -> None:
    first, _ = read(tmp_path, INVENTED)
    assert first.text == "Ada doesn't sing,du_weißt"
    shown = [first.text[start:end] for start, end in first.spans]
    assert shown[:5] == list(first.words[:5])
    assert shown[5:] == ["du_weißt", ""]  # a token that its words do not spell belongs to the first of them


@pytest.mark.parametrize("old, new", [("1\tStop", "3\tStop"), ("\tVERB\t_\t_\t0\troot", "\tVERB\t_\t_\t9\troot")])
def test_a_damaged_file_is_refused_in_one_sentence(old: str, new: str, tmp_path: Path) -> None:
    assert old in INVENTED
    with pytest.raises(AssayError, match=r"invented.conllu .*; fetch it again"):
        read(tmp_path, INVENTED.replace(old, new))


def test_without_a_local_copy_one_sentence_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    with pytest.raises(AssayError, match=r"set ASSAY_DATA to a folder that holds ud_english_ewt/en_ewt-ud-dev"):
        treebank("dev")
    (tmp_path / "ud_english_ewt").mkdir()
    (tmp_path / FILES["dev"]).write_bytes(gzip.compress(INVENTED.encode()))
    assert len(treebank("dev")) == 2


@pytest.mark.data
@pytest.mark.parametrize("split, sentences, words", [("dev", 2001, 25_147), ("test", 2077, 25_094)])
def test_the_treebank_is_read_whole_and_its_texts_are_those_stated(split: str, sentences: int, words: int) -> None:
    found = treebank(split)
    assert (len(found), sum(len(each.words) for each in found)) == (sentences, words)
    lines = read_text(needed_copy(FILES[split], "ud")).split("\n")
    stated = [line.removeprefix("# text = ").replace("\xa0", " ") for line in lines if line.startswith("# text = ")]
    assert [each.text for each in found] == stated
    for each in found:
        assert tuple(each.text[start:end] for start, end in each.spans) == each.words
        assert each.governors.count(-1) == 1
