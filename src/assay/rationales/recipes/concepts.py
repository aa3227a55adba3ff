"""Recipes of concept models, whose masks stand for concepts."""

from __future__ import annotations

from assay.rationales.concepts.terms import ConceptCrossEntropy, ConceptSimilarity, Consistency, Overlap, Presence
from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.excerpt import Excerpt, Window
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.stories import with_story

CONCEPTS = "Concept model, whose masks stand for concepts"
ALL = ("selector", "predictor", "concepts")


@with_story(CONCEPTS, "Bouchacourt and Denoyer (2019)", like=GAME)
def educe(options: Options) -> Scheme:
    """Bouchacourt and Denoyer (2019): an excerpt for each concept, and a linear decision on which are present."""
    masks, rate = _shared(options)
    size = 0.02 if options.size is None else options.size
    terms = ((1.0, ConceptCrossEntropy()), (0.02, Consistency()), (size, Presence()))
    rules = Rules(
        options.units,
        Excerpt(longest=3, temperature=1.0),
        Decoding("window", rate),
        masks,
        options.reading,
        answers="presence",
    )
    return Scheme(rules, (Stage((Move(ALL, terms),)),), extras=("concepts",))


@with_story(CONCEPTS, "Antognini and Faltings (2021)", like=GAME)
def conrat(options: Options) -> Scheme:
    """Antognini and Faltings (2021): an excerpt for each concept, and the sum of their votes."""
    # differs from Antognini and Faltings (2021): no teacher, and no words pruned beforehand
    masks, rate = _shared(options)
    size = 0.5 if options.size is None else options.size
    terms = ((1.0, ConceptCrossEntropy()), (size, Overlap(rate)), (0.05, ConceptSimilarity()))
    rules = Rules(options.units, Window(rate), Decoding("window", rate), masks, options.reading, answers="votes")
    return Scheme(rules, (Stage((Move(ALL, terms),)),), extras=("concepts",))


def _shared(options: Options) -> tuple[int, float]:
    """The number of concepts, by default two for each class, and each one's share of the words."""
    concepts = 2 * options.classes if options.concepts is None else options.concepts
    return concepts, options.rate / concepts
