from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.data.columns import Columns, fraction, read_file, train_dev_test
from assay.data.examples import Corpus, Example
from assay.errors import AssayError

Rows = list[dict[str, Any]]


def invented(number: int = 60) -> Rows:
    """Texts with everything that breaks careless readers: commas, quotes, newlines, other scripts, length."""
    odd = [
        'a "quoted" word, and more',
        "two\nlines, one\ttab",
        "größer 本 \u2028 \x85 x",
        "word " * 30_000,
        "'",
    ]
    texts = odd + [f"invented sentence number {count}" for count in range(number - len(odd))]
    return [{"text": text, "label": ("bad", "good")[count % 2]} for count, text in enumerate(texts)]


def write_separated(path: Path, rows: Rows) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter="\t" if ".tsv" in path.name else ",")
        writer.writeheader()
        writer.writerows(rows)


def write_lines(path: Path, rows: Rows) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_list(path: Path, rows: Rows) -> None:
    path.write_text(json.dumps(rows))


def write_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "reviews.csv": write_separated,
    "reviews.csv.gz": write_separated,
    "reviews.tsv": write_separated,
    "reviews.tsv.gz": write_separated,
    "reviews.jsonl": write_lines,
    "reviews.jsonl.gz": write_lines,
    "reviews.json": write_list,
    "reviews.parquet": write_parquet,
}


def everything(corpus: Corpus) -> list[Example]:
    return [*corpus.train, *corpus.dev, *corpus.test]


def labelled(corpus: Corpus) -> dict[str, str]:
    return {example.text: corpus.classes[example.label] for example in everything(corpus)}


def jsonl(folder: Path, rows: Rows, columns: Columns | None = None, seed: int = 0) -> Corpus:
    write_lines(folder / "reviews.jsonl", rows)
    return read_file(folder / "reviews.jsonl", columns or Columns(), seed)


def with_labels(labels: Sequence[object], copies: int = 20) -> Rows:
    """Enough texts of each label that every class is in train."""
    return [
        {"text": f"text {copy} of {place}", "label": label}
        for place, label in enumerate(labels)
        for copy in range(copies)
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_corpus(name: str, tmp_path: Path) -> None:
    rows = invented()
    WRITERS[name](tmp_path / name, rows)
    corpus = read_file(tmp_path / name, Columns(), seed=3)
    assert corpus.name == "reviews"
    assert corpus.classes == ("bad", "good")
    assert labelled(corpus) == {row["text"]: row["label"] for row in rows}
    write_lines(tmp_path / "same.jsonl", rows)
    same = read_file(tmp_path / "same.jsonl", Columns(), seed=3)
    assert (corpus.train, corpus.dev, corpus.test) == (same.train, same.dev, same.test)


def test_stray_quotes_in_a_tab_separated_file_are_characters(tmp_path: Path) -> None:
    lines = [f"{'ab'[row % 2]}\tsentence {row}" for row in range(60)]
    lines[3:9:5] = ['b\t"starts with a quote', 'a\tends with one"']
    lines[20] = 'a\t"one" word'
    (tmp_path / "plain.tsv").write_text("label\ttext\n" + "\n".join(lines))
    corpus = read_file(tmp_path / "plain.tsv", Columns(), 0)
    assert labelled(corpus) == {line[2:]: line[0] for line in lines}


def test_windows_line_ends_and_byte_order_marks_are_no_part_of_the_data(tmp_path: Path) -> None:
    body = "".join(f"sentence {row},{row % 2}\r\n" for row in range(50))
    (tmp_path / "windows.csv").write_bytes(b"\xef\xbb\xbf" + f"text,label\r\n\r\n{body}".encode())
    corpus = read_file(tmp_path / "windows.csv", Columns(), 0)
    assert labelled(corpus) == {f"sentence {row}": str(row % 2) for row in range(50)}


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([10, 9, -1], ("-1", "9", "10")),
        (["10", "9", " 2 "], ("2", "9", "10")),
        ([1.0, 0.0], ("0", "1")),
        (["1.0", "0.0"], ("0", "1")),
        ([True, False], ("false", "true")),
        (["zebra", "Ant", "ant "], ("Ant", "ant", "zebra")),
    ],
)
def test_classes_are_sorted_numbers_by_size(labels: list[object], classes: tuple[str, ...], tmp_path: Path) -> None:
    corpus = jsonl(tmp_path, with_labels(labels))
    assert corpus.classes == classes
    assert {example.label for example in corpus.train} == set(range(len(classes)))


def test_rows_that_lack_something_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = invented()
    rows += [{"text": " \n", "label": "good"}, {"text": None, "label": "bad"}, {"label": "bad"}]
    rows += [{"text": "no label", "label": None}, {"text": "nor here", "label": ""}]
    rows += [{"text": "nor there", "label": float("nan")}]
    corpus = jsonl(tmp_path, rows)
    assert corpus.skipped == {"no text": 3, "no label": 3}
    assert len(everything(corpus)) == 60


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "good"], r"column 'label' mixes numbers \(such as '1'\) and words \(such as 'good'\)"),
        ([True, 1], "mixes numbers .* and truth values"),
        ([3.5, 1], "holds the rating 3.5; turn ratings into a few classes"),
        (["3.75", "1"], "holds the rating 3.75"),
        (["same"], "holds one class alone, 'same'"),
        (list(range(101)), "holds 101 different values"),
        (["fine", "x" * 10_000_000], "a label of 10,000,000 characters, 'x+…; at most 200 make sense"),
        ([[1, 2], [3]], r"holds \[1, 2\], which is no label"),
        ([None], "holds no label in any row"),
    ],
)
def test_labels_that_make_no_classes_are_told(labels: list[object], message: str, tmp_path: Path) -> None:
    with pytest.raises(AssayError, match=message):
        jsonl(tmp_path, with_labels(labels, 3))


@pytest.mark.parametrize("names", [("sentence", "class"), ("Review", "Sentiment"), ("content", "target")])
def test_usual_column_names_are_found(names: tuple[str, str], tmp_path: Path) -> None:
    rows = [{"id": 1, names[0]: row["text"], names[1]: row["label"]} for row in invented()]
    assert labelled(jsonl(tmp_path, rows)) == {row["text"]: row["label"] for row in invented()}


@pytest.mark.parametrize("name", ["rating", "Stars", "score"])
@pytest.mark.parametrize("classes", [5, 10])
def test_ratings_need_no_option(name: str, classes: int, tmp_path: Path) -> None:
    rows = [{"id": row, "text": f"review {row}", name: f"{row % classes + 1}.0"} for row in range(40 * classes)]
    write_separated(tmp_path / "imdb10.csv", rows)
    corpus = read_file(tmp_path / "imdb10.csv", Columns(), 0)
    assert corpus.classes == tuple(str(rating) for rating in range(1, classes + 1))
    assert labelled(corpus) == {row["text"]: str(row["id"] % classes + 1) for row in rows}


def test_a_label_comes_before_a_rating(tmp_path: Path) -> None:
    rows = [
        {"score": 0.25, "rating": count % 7, "text": row["text"], "Label": row["label"]}
        for count, row in enumerate(invented())
    ]
    assert labelled(jsonl(tmp_path, rows)) == {row["text"]: row["Label"] for row in rows}


@pytest.mark.parametrize(
    ("text", "query", "label"),
    [("premise", "hypothesis", "gold_label"), ("Context", "Question", "Answer"), ("passage", "query", "label")],
)
def test_pairs_need_no_option(text: str, query: str, label: str, tmp_path: Path) -> None:
    rows = [{query: f"query {row}", label: "ab"[row % 2], text: f"text {row}"} for row in range(60)]
    corpus = jsonl(tmp_path, rows)
    found = {example.text: (example.query, corpus.classes[example.label]) for example in everything(corpus)}
    assert found == {row[text]: (row[query], row[label]) for row in rows}
    alone = jsonl(tmp_path, [{"": "7", **row} for row in rows], Columns(query=""))  # some write numbers without a name
    assert [example.text for example in alone.train] == [example.text for example in corpus.train]
    assert all(example.query is None for example in everything(alone))


def test_a_column_is_read_once(tmp_path: Path) -> None:
    rows = [{"question": f"text {row}", "premise": f"premise {row}", "label": row % 2} for row in range(60)]
    alone = jsonl(tmp_path, rows, Columns(text="question"))
    assert {(example.text[:4], example.query) for example in everything(alone)} == {("text", None)}
    turned = jsonl(tmp_path, rows, Columns(text="question", query="premise"))
    assert all(example.query == example.text.replace("text", "premise") for example in everything(turned))
    with pytest.raises(AssayError, match="no column 'text' to take the text from"):
        jsonl(tmp_path, rows, Columns(query="premise"))


def test_named_columns_come_before_usual_ones(tmp_path: Path) -> None:
    rows = [{**row, "body": row["text"].upper(), "mood": "x" if row["label"] == "bad" else "y"} for row in invented()]
    corpus = jsonl(tmp_path, rows, Columns(text="body", label="mood"))
    assert labelled(corpus) == {row["body"]: row["mood"] for row in rows}


def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match=r"no column 'body' to take the text from; it has 'text', 'label'\."):
        jsonl(tmp_path, invented(), Columns(text="body"))
    with pytest.raises(AssayError, match=r"no column 'label' to take the label from; it has 'text', 'points'\."):
        jsonl(tmp_path, [{"text": "a", "points": 1}])


FAULTY: dict[str, tuple[bytes, str]] = {
    "latin.csv": ("text,label\nfine,1\ncafé,0\n".encode("latin-1"), r"is not UTF-8: byte 21 \(line 3\)"),
    "half.jsonl": (
        b'{"text": "half \\ud800 pair", "label": 1}\n{"text": "b", "label": 2}',
        "row 1 .*surrogate",
    ),
    "empty.csv": (b"", "holds no rows"),
    "header.csv": (b"text,label\n", "holds no rows"),
    "blank.jsonl": (b"\n\n", "holds no rows"),
    "list.json": (b"[]", "holds no rows"),
    "ragged.csv": (b"text,label\na,1\nb, c,2\n", "row 2 has 3 values under 2 column names"),
    "twice.csv": (b"text,text\na,1\n", "names two columns 'text'"),
    "open.csv": (b'text,label\n"never closed,1\nb,2\n', "line 3: unexpected end of data"),
    "quotes.csv": (
        b'text,label\n"a \\"b\\" c",1\n',
        "line 2: .*quotes inside a quoted value must be doubled",
    ),
    "broken.jsonl": (b'{"text": "a", "label": 1}\n{"text": \n', "line 2 is not valid JSON"),
    "numbers.jsonl": (b'{"text": "a", "label": 1}\n7\n', "item 2 is not a JSON object"),
    "tokens.jsonl": (
        b'{"text": ["a"], "label": 1}\n{"text": "b", "label": 2}',
        r"row 1 holds \['a'\] instead of text",
    ),
    "cut.csv.gz": (gzip.compress(b"text,label\na,1\n" * 99)[:-20], "is damaged or not a gzip file"),
    "plain.csv.gz": (b"text,label\na,1\n", "is damaged or not a gzip file"),
    "cut.parquet": (b"PAR1 and then nothing", "is not a readable parquet file"),
    "notes.txt": (b"text,label\na,1\n", r"has no suffix that assay reads; use one of \.csv"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_file_is_told_in_one_sentence(name: str, tmp_path: Path) -> None:
    data, message = FAULTY[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AssayError, match=message) as error:
        read_file(tmp_path / name, Columns(), 0)
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_folders_and_absent_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(AssayError, match="is a folder"):
        read_file(tmp_path / "folder.csv", Columns(), 0)
    with pytest.raises(AssayError, match="does not exist"):
        read_file(tmp_path / "absent.csv", Columns(), 0)


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    write_separated(tmp_path / "secret.csv", invented())
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(AssayError, match=r"secret\.csv cannot be read \(Permission denied\); check its permissions"):
        read_file(tmp_path / "secret.csv", Columns(), 0)


@pytest.mark.parametrize("name", ["split", "exp_split", "part"])
def test_a_split_column_decides(name: str, tmp_path: Path) -> None:
    parts = ["train", "Valid", "test", "train", "val", "TEST", "train", "dev", "validation", "test"]
    rows = [{**row, name: parts[count // 2 % 10]} for count, row in enumerate(invented(60))]
    corpus = jsonl(tmp_path, rows, Columns(split="part" if name == "part" else None))
    for part, names in (
        ("train", {"train"}),
        ("dev", {"valid", "val", "dev", "validation"}),
        ("test", {"test"}),
    ):
        texts = [row["text"] for row in rows if row[name].lower() in names]
        assert [example.text for example in getattr(corpus, part)] == texts


def test_a_missing_dev_split_is_cut_from_train(tmp_path: Path) -> None:
    rows = [{**row, "split": "test" if count > 50 else "train"} for count, row in enumerate(invented(60))]
    corpus = jsonl(tmp_path, rows)
    assert len(corpus.test) == 9
    assert corpus.dev
    assert len(corpus.dev) + len(corpus.train) == 51


def test_splits_that_cannot_serve_are_told(tmp_path: Path) -> None:
    def split_by(rule: Callable[[int], object]) -> Rows:
        return [{**row, "split": rule(count)} for count, row in enumerate(invented(20))]

    with pytest.raises(AssayError, match="column 'split' holds 'fold1'; use train, dev and test"):
        jsonl(tmp_path, split_by(lambda count: "fold1" if count == 7 else "train"))
    with pytest.raises(AssayError, match="leaves no row to test on"):
        jsonl(tmp_path, split_by(lambda count: "train"))
    with pytest.raises(AssayError, match="leaves no row to train on"):
        jsonl(tmp_path, split_by(lambda count: "test" if count % 3 else "dev"))
    with pytest.raises(AssayError, match="has no training example of 'good'"):
        jsonl(tmp_path, split_by(lambda count: "test" if count % 2 else "train"))
    one_class_in_test = jsonl(tmp_path, split_by(lambda count: "test" if count % 4 == 0 else "train"))
    assert {example.label for example in one_class_in_test.test} == {0}


def test_queries_and_evidence_are_kept(tmp_path: Path) -> None:
    rows = [
        {
            "text": f"Ada {count} is in the hall",
            "label": count % 2,
            "ask": f"where is {count}?",
            "why": [[0, 3], [12, 15]],
        }
        for count in range(40)
    ]
    rows[0] |= {"why": None}
    rows[1] |= {"why": []}
    rows[2] |= {"ask": ""}
    rows[3] |= {"why": "[[4, 5]]"}
    columns = Columns(query="ask", evidence="why")
    corpus = jsonl(tmp_path, rows, columns)
    assert corpus.skipped == {"no query": 1}
    found = {example.query: example.evidence for example in everything(corpus)}
    assert found["where is 0?"] is None
    assert found["where is 1?"] == ()
    assert found["where is 3?"] == ((4, 5),)
    assert found["where is 9?"] == ((0, 3), (12, 15))
    write_parquet(tmp_path / "same.parquet", [row for row in rows if row["why"] != "[[4, 5]]"])
    same = read_file(tmp_path / "same.parquet", columns, 0)
    assert {example.query: example.evidence for example in everything(same)}["where is 9?"] == (
        (0, 3),
        (12, 15),
    )


@pytest.mark.parametrize("evidence", [[[0, 99]], [[3, 3]], [[-1, 2]], [0, 3], "words", [["a", "b"]], 7])
def test_evidence_outside_the_text_is_told(evidence: object, tmp_path: Path) -> None:
    rows = [{**row, "evidence": None} for row in invented(20)]
    rows[7] |= {"evidence": evidence, "text": "short"}
    with pytest.raises(AssayError, match=r"row 8 holds the evidence .*; give \[start, end\] pairs"):
        jsonl(tmp_path, rows, Columns(evidence="evidence"))


def test_the_seed_changes_a_split_and_nothing_else_does(tmp_path: Path) -> None:
    rows = invented(200)
    corpus = jsonl(tmp_path, rows, seed=1)
    turned = jsonl(tmp_path, rows[::-1] + with_labels(["bad", "good"]), seed=1)
    assert set(corpus.test) <= set(turned.test)
    assert set(corpus.dev) <= set(turned.dev)
    assert set(corpus.test) != set(jsonl(tmp_path, rows, seed=2).test)


@given(st.lists(st.sampled_from([f"text {number}" for number in range(12)]), min_size=1), st.integers(0, 9))
def test_identical_texts_never_cross_splits(texts: list[str], seed: int) -> None:
    parts = train_dev_test([Example(text, 0) for text in texts], seed)
    assert sorted(example.text for part in parts for example in part) == sorted(texts)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not {example.text for example in parts[one]} & {example.text for example in parts[other]}
    assert parts[2]
    assert parts[1] or not parts[0]  # a few texts may all fall to the test


def test_fractions_are_spread_evenly() -> None:
    marks = [fraction(f"text {number}", 0) for number in range(4000)]
    for tenth in range(10):
        # binomial with n = 4000 and p = .1: five standard deviations are 95
        assert abs(sum(tenth <= 10 * mark < tenth + 1 for mark in marks) - 400) < 95


def test_a_split_never_changes_between_versions() -> None:
    assert fraction("the same for ever", 0) == fraction("  the same for ever\n", 0)
    assert round(fraction("the same for ever", 0), 6) == 0.613041
