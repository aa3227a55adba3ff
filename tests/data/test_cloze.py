"""Cloze questions from a table and from folders: entities as classes, those of the text as candidates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from assay.data.batches import collate, tokenise
from assay.data.columns import read_question
from assay.data.corpora import corpus
from assay.data.examples import Corpus, candidates, is_cloze
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError

Row = tuple[str, str, str, str]  # split, text, question, answer

ROWS: list[Row] = [
    ("train", "@entity2 met @entity10 in @entity3 .", "@placeholder met @entity10", "@entity2"),
    ("train", "@entity2 left @entity12 .", "who left ? @placeholder", "@entity12"),
    ("train", "@entity12 saw @entity1 .", "@placeholder was seen", "@entity12"),
    ("train", "@entity2 saw nobody .", "@placeholder was not there", "@entity7"),
    ("dev", "@entity12 sang .", "@placeholder sang", "@entity12"),
    ("dev", "@entity3 sang .", "@placeholder sang", "@entity3"),
    ("test", "@entity12 and @entity2 and @entity3 ran .", "@placeholder ran first", "@entity2"),
    ("test", "@entity10 ran .", "@placeholder ran", "@entity10"),
]
FOLDERS = {"train": "training", "dev": "validation", "test": "test"}


def write_table(
    folder: Path, rows: Sequence[Row], names: tuple[str, str, str] = ("context", "question", "answer")
) -> Path:
    text, query, answer = names
    objects = [{"split": row[0], text: row[1], query: row[2], answer: row[3]} for row in rows]
    (folder / "news.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    return folder / "news.jsonl"


def question(text: str, query: str, answer: str) -> str:
    names = "".join(f"@entity{number}:Name {number}\n" for number in range(3))
    return f"http://news.example/1.html\n\n{text}\n\n{query}\n\n{answer}\n\n{names}"


def write_folder(folder: Path, rows: Sequence[Row]) -> Path:
    for number, (split, *parts) in enumerate(rows):
        path = folder / "news" / FOLDERS[split] / f"{number:03}.question"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(question(*parts))
    return folder / "news"


def told(loaded: Corpus) -> list[list[tuple[str, str | None, str, list[str]]]]:
    """Each split with names in place of numbers."""
    return [
        [
            (one.text, one.query, loaded.classes[one.label], [loaded.classes[place] for place in one.candidates or ()])
            for one in split
        ]
        for split in (loaded.train, loaded.dev, loaded.test)
    ]


@pytest.mark.parametrize("names", [("context", "question", "answer"), ("text", "query", "label")])
def test_answers_are_classes_and_the_entities_of_a_text_its_candidates(
    names: tuple[str, str, str], tmp_path: Path
) -> None:
    loaded = corpus(str(write_table(tmp_path, ROWS, names)))
    assert loaded.classes == ("@entity2", "@entity12")
    expected = [  # the fourth answer is not in its text; @entity3 and @entity10 are never an answer in training
        [(*ROWS[0][1:], ["@entity2"]), (*ROWS[1][1:], ["@entity2", "@entity12"]), (*ROWS[2][1:], ["@entity12"])],
        [(*ROWS[4][1:], ["@entity12"])],
        [(*ROWS[6][1:], ["@entity2", "@entity12"])],
    ]
    assert told(loaded) == expected
    assert loaded.skipped == {"answer not in the text": 1, "answer never seen in training": 2}


@pytest.mark.parametrize("inner", [False, True])
def test_folders_as_distributed_give_the_same_corpus_as_a_table(inner: bool, tmp_path: Path) -> None:
    path = write_folder(tmp_path, ROWS)
    if inner:
        path.rename(tmp_path / "questions")
        path.mkdir()
        (tmp_path / "questions").rename(path / "questions")
    assert corpus(str(path)) == corpus(str(write_table(tmp_path, ROWS)))


def test_without_validation_a_tenth_of_training_becomes_dev(tmp_path: Path) -> None:
    rows = [("train", f"@entity1 or @entity2 {row} .", "@placeholder", f"@entity{row % 2 + 1}") for row in range(60)]
    loaded = corpus(str(write_folder(tmp_path, [*rows, ROWS[6]])))
    assert loaded.dev and len(loaded.train) + len(loaded.dev) == 60


def test_questions_on_one_text_stay_together_without_a_split(tmp_path: Path) -> None:
    objects = [
        {"text": f"@entity1 , @entity2 {row // 4} .", "query": f"{row} @placeholder", "answer": f"@entity{row % 2 + 1}"}
        for row in range(400)
    ]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, objects)))
    loaded = corpus(str(tmp_path / "news.jsonl"))
    texts = [{one.text for one in split} for split in (loaded.train, loaded.dev, loaded.test)]
    assert sum(map(len, texts)) == len(set.union(*texts)) == 100


def test_more_than_a_hundred_entities_are_no_mistake_but_more_than_a_hundred_words_are(tmp_path: Path) -> None:
    rows: list[Row] = [("train", f"@entity{n} ran .", "@placeholder ran", f"@entity{n}") for n in range(150)]
    assert len(corpus(str(write_table(tmp_path, [*rows, ROWS[4], ROWS[6]]))).classes) == 150
    words: list[Row] = [(split, text, query, answer.strip("@")) for split, text, query, answer in rows]
    with pytest.raises(AssayError, match="150 different values"):
        corpus(str(write_table(tmp_path, words)))


def test_one_answer_that_is_no_entity_makes_the_classes_ordinary(tmp_path: Path) -> None:
    rows: list[Row] = [*ROWS[:3], ("train", "nobody ran .", "@placeholder ran", "nobody"), ROWS[6]]
    loaded = corpus(str(write_table(tmp_path, rows)))
    assert loaded.classes == ("@entity12", "@entity2", "nobody")
    assert all(one.candidates is None for one in (*loaded.train, *loaded.test))


def test_a_batch_allows_the_candidates_alone(tmp_path: Path) -> None:
    loaded = corpus(str(write_table(tmp_path, ROWS)))
    rows, _ = tokenise(loaded.train, Tokeniser.fit([row[1] for row in ROWS], TextOptions(min_count=1)), 100)
    batch = collate(rows, len(loaded.classes))
    assert batch.candidates is not None and batch.query is not None
    assert batch.candidates.tolist() == [[True, False], [True, True], [False, True]]
    assert batch.candidates[torch.arange(3), batch.labels].all()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (question("one .", "two", "@entity4"), ("one .", "two", "@entity4")),
        (question("one .", "two", "@entity4").replace("\n", "\r\n"), ("one .", "two", "@entity4")),
        (question("one .\n\nmore .", "two", "@entity4"), ("one .\nmore .", "two", "@entity4")),
        ("\n\none .\n\ntwo\n\n@entity4\n", ("one .", "two", "@entity4")),  # no address and no names
        ("\n\none .\n\nmore .\n\ntwo\n\n@entity4", ("one .\nmore .", "two", "@entity4")),
        (question("one .", "two", "@entity4").rstrip() + "\n@entity9:@entity1", ("one .", "two", "@entity4")),
    ],
)
def test_the_parts_of_a_file_are_told_apart(written: str, expected: tuple[str, str, str], tmp_path: Path) -> None:
    (tmp_path / "a.question").write_bytes(written.encode())
    assert read_question(tmp_path / "a.question") == expected


@pytest.mark.parametrize("written", [question("one", "two", "Ada"), "address\n\n@entity1\n", ""])
def test_a_file_that_is_no_question_is_named(written: str, tmp_path: Path) -> None:
    path = write_folder(tmp_path, ROWS) / "training" / "odd.question"
    path.write_text(written)
    with pytest.raises(AssayError, match=r"odd\.question is no cloze question: a text, a question and an answer"):
        corpus(str(tmp_path / "news"))


def test_a_folder_without_questions_is_told(tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    with pytest.raises(AssayError, match=r"is a folder; name one file, or a folder with training, validation and test"):
        corpus(str(tmp_path))


def test_a_test_that_shares_no_answer_with_training_is_told(tmp_path: Path) -> None:
    rows: list[Row] = [*ROWS[:3], ROWS[7]]
    with pytest.raises(AssayError, match="leaves no row to test on"):
        corpus(str(write_table(tmp_path, rows)))


def test_only_entities_make_a_cloze() -> None:
    assert is_cloze(["@entity0", "@entity12"])
    assert not any(map(is_cloze, ([], ["@entity0", "entity1"], ["@entity"], ["@entity1x"], ["@placeholder"])))
    assert candidates("@entity12 met @entity3", ["@entity1", "@entity3", "@entity12"]) == (1, 2)
