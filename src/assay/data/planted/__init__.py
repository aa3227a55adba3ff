"""Corpora that we write ourselves, so that the deciding words are known."""

from __future__ import annotations

from collections.abc import Callable

from assay.data.examples import Corpus
from assay.data.planted.agreement import agreement
from assay.data.planted.aspect import aspect
from assay.data.planted.entail import entail
from assay.data.planted.facts import facts1, facts2, facts3
from assay.data.planted.keyword import keyword
from assay.data.planted.majority import majority
from assay.data.planted.negation import negation
from assay.data.planted.opener import opener
from assay.data.planted.phrase import phrase
from assay.data.planted.shortcut import shortcut

PLANTED: dict[str, Callable[[int], Corpus]] = {
    "planted:keyword": keyword,
    "planted:phrase": phrase,
    "planted:opener": opener,
    "planted:negation": negation,
    "planted:majority": majority,
    "planted:agreement": agreement,
    "planted:shortcut": shortcut,
    "planted:facts1": facts1,
    "planted:facts2": facts2,
    "planted:facts3": facts3,
    "planted:entail": entail,
    "planted:aspect": aspect,
}
"""By name, the corpus as a function of the seed."""
