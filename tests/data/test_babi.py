"""Stories with questions, from small invented files in the format of the real ones."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest

from assay.data import published as babi
from assay.data.batches import collate, tokenise
from assay.data.corpora import CORPORA, corpus
from assay.data.examples import Corpus, Example, joined
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError

STORY = """\
1 Ada went to the attic.
2 Bo went to the cellar.
3 Where is Ada? \tattic\t1
4 Ada took the harp.
5 Ada went to the cellar.
6 Where is the harp? \tcellar\t5 4
"""


def story(number: int) -> str:
    return f"1 Ada went to cave {number}.\n2 Where is Ada? \tcave\t1\n3 Bo left.\n4 Where is Bo? \tout\t3\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return tmp_path


def read(folder: Path, name: str, *texts: str) -> Corpus:
    for file, text in zip(babi.BABI[name], texts, strict=True):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(gzip.compress(text.encode()))
    return corpus(name)


def marked(example: Example) -> list[str]:
    return [example.text[start:end] for start, end in example.evidence or ()]


def test_a_question_comes_with_all_that_was_told_before_it(folder: Path) -> None:
    loaded = read(folder, "babi1", STORY + story(1), STORY)
    first, second = loaded.test
    assert loaded.classes == ("attic", "cave", "cellar", "out")
    assert first.text == "Ada went to the attic.\nBo went to the cellar."
    assert second.text == f"{first.text}\nAda took the harp.\nAda went to the cellar."
    assert [(one.query, loaded.classes[one.label]) for one in loaded.test] == [
        ("Where is Ada?", "attic"),
        ("Where is the harp?", "cellar"),
    ]


def test_supporting_facts_are_whole_statements_in_the_order_of_the_text(folder: Path) -> None:
    first, second = read(folder, "babi1", STORY + story(1), STORY).test
    assert marked(first) == ["Ada went to the attic."]
    assert marked(second) == ["Ada took the harp.", "Ada went to the cellar."]
    assert first.planted and second.planted


def test_every_statement_is_a_sentence_and_facts_cover_whole_ones(folder: Path) -> None:
    examples = read(folder, "babi1", STORY + story(1), STORY).test
    rows, _ = tokenise(examples, Tokeniser.fit([examples[1].text], TextOptions(min_count=1)), 1000)
    batch = collate(rows)
    assert batch.sentences is not None and batch.truth is not None
    assert batch.sentences[1].unique().tolist() == [0, 1, 2, 3]
    assert batch.sentences[1][batch.truth[1]].unique().tolist() == [2, 3]
    assert batch.truth[1].sum() == (batch.sentences[1] > 1).sum()


def test_joined_stories_mark_the_question_too(folder: Path) -> None:
    example = joined(read(folder, "babi1", STORY + story(1), STORY)).test[0]
    assert example.text.startswith("Where is Ada?\nAda went")
    assert marked(example) == ["Where is Ada?", "Ada went to the attic."]


def test_stories_are_never_cut_between_train_and_dev(folder: Path) -> None:
    loaded = read(
        folder, "babi2", "".join(map(story, range(100))), STORY.replace("attic\t", "out\t").replace("cellar\t", "out\t")
    )
    places = [{example.text.partition("\n")[0] for example in split} for split in (loaded.train, loaded.dev)]
    assert not places[0] & places[1]
    assert len(places[0] | places[1]) == 100
    assert 2 < len(places[1]) < 25
    assert Counter(map(len, (loaded.train, loaded.dev))) == Counter(2 * len(part) for part in places)


def test_a_story_that_stands_in_both_files_of_the_third_task_counts_once(folder: Path) -> None:
    here, there = "".join(map(story, range(30))), "".join(map(story, range(25, 40)))
    loaded = read(folder, "babi3", here, there, story(99))
    texts = Counter(example.text for example in (*loaded.train, *loaded.dev) if "\n" not in example.text)
    assert texts == Counter(f"Ada went to cave {number}." for number in range(40))


@pytest.mark.parametrize("text", ["2 Ada left.\n", "1 Ada left.\n3 Bo left.\n", "1 Ada left.\nBo left.\n"])
def test_lines_that_are_no_story_are_told(folder: Path, text: str) -> None:
    with pytest.raises(AssayError, match=r"_train\.txt\.gz holds .* where another line of a story was expected"):
        read(folder, "babi1", text, STORY)


@pytest.mark.parametrize("name", babi.BABI)
def test_without_a_local_copy_the_error_names_the_file(name: str, folder: Path) -> None:
    with pytest.raises(AssayError, match=rf"'{name}' has no public source here; .* {babi.BABI[name][0]}"):
        corpus(name)


@pytest.mark.data
@pytest.mark.parametrize(("name", "taught", "facts"), [("babi1", 10_000, 1), ("babi2", 10_000, 2), ("babi3", 1925, 3)])
def test_real_stories_have_the_published_counts_and_facts(name: str, taught: int, facts: int) -> None:
    loaded = corpus(name)
    assert (len(loaded.train) + len(loaded.dev), len(loaded.test)) == (taught, 1000)
    assert 0.07 < len(loaded.dev) / taught < 0.12
    assert loaded.classes == CORPORA[name].classes
    for example in (*loaded.train, *loaded.dev, *loaded.test):
        assert len(marked(example)) == facts
        assert set(marked(example)) <= set(example.text.split("\n"))
        assert example.query and re.fullmatch(r"Where (is|was) [\w ]+\?", example.query)
        assert loaded.classes[example.label] in " ".join(marked(example))


@pytest.mark.data
@pytest.mark.parametrize("name", babi.BABI)
def test_no_real_story_is_in_two_splits(name: str) -> None:
    loaded = corpus(name)
    wholes = [
        [example.text for example in split[4::5]] for split in (loaded.train, loaded.dev, loaded.test)
    ]  # 5 questions
    every = [text for texts in wholes for text in texts]
    assert len(every) == len(set(every)) == sum(map(len, (loaded.train, loaded.dev, loaded.test))) / 5
    assert all(every)
