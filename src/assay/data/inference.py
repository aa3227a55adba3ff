"""Pairs of sentences: does the second follow from the first?"""

from __future__ import annotations

from collections.abc import Sequence

from assay.data import evidence
from assay.data.evidence import RELATIONS
from assay.data.examples import Corpus, Example
from assay.data.pins import SOURCES
from assay.data.sources import local_copy, member
from assay.data.splits import train_dev
from assay.data.tables import read_rows

SNLI = (*evidence.SNLI, "snli/test.tsv.gz")
PACKAGED = ("snli_1.0_train_subset.jsonl", "snli_1.0_test.jsonl")


def snli() -> Corpus:
    """Premises as texts and hypotheses as queries (Bowman et al. 2015): the first 100,000 pairs, and all to test on.

    The package has no dev pairs: there a tenth of train becomes dev. Pairs without a majority label are left out.
    """
    copies = [copy for file in SNLI if (copy := local_copy(file)) is not None]
    if len(copies) == len(SNLI):
        splits = [read_rows(copy, "gold_label", "premise", "hypothesis") for copy in copies]
        train, dev, test = (labelled(rows) for rows in splits)
    else:
        paths = [member(SOURCES["snli"], name) for name in PACKAGED]
        splits = [read_rows(path, "gold_label", "sentence1", "sentence2") for path in paths]
        taught, test = (labelled(rows) for rows in splits)
        train, dev = train_dev(taught)
    undecided = sum(map(len, splits)) - sum(map(len, (train, dev, test)))
    return Corpus("snli", RELATIONS, train, dev, test, {"annotators undecided": undecided})


def labelled(rows: Sequence[tuple[str, str, str]]) -> tuple[Example, ...]:
    """The pairs that have one of the three labels."""
    return tuple(
        Example(premise, RELATIONS.index(label), query=hypothesis)
        for label, premise, hypothesis in rows
        if label in RELATIONS
    )
