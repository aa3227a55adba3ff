"""Probes: what every layer and head of a transformer attends to, beside chance and simple rules."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from assay.data.mentions import mentions
from assay.data.negation import negated
from assay.data.treebank import treebank
from assay.errors import AssayError, unknown
from assay.models.hf_body import Body
from assay.models.hf_subwords import SubwordTokeniser
from assay.probes.coreference import coreference
from assay.probes.examples import examples
from assay.probes.negation import negation
from assay.probes.pairs import pairs
from assay.probes.relations import relations
from assay.probes.speech import speech
from assay.probes.treebank_view import TreebankView, view_treebank

PROBES = {
    "speech": "How much of the attention of every head goes to words of each part of speech.",
    "relations": "Which head attends from a word to its governor, or back, for each grammatical relation.",
    "coreference": "Whether a pronoun attends to the name that it stands for rather than to another.",
    "negation": "Whether the words in the scope of a negation attend to its cue.",
    "pairs": "Whether all heads together tell which word governs which, and in what relation.",
}
"""The sections of a probe, with the question of each."""

_Item = TypeVar("_Item")


def probe(
    network: Body, tokeniser: SubwordTokeniser, sections: Sequence[str], limit: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """The results of the sections as JSON values; `limit` samples so many sentences of each set, None takes all."""
    for name in sections:
        if name not in PROBES:
            raise unknown("section of a probe", name, PROBES)
    if limit is not None and limit < 1:
        raise AssayError(f"A probe needs at least one sentence, got {limit}; leave the limit out for all.")
    answers: dict[str, Any] = {}
    drawn: list[dict[str, Any]] = []
    if {"speech", "relations", "pairs"} & set(sections):
        dev, test = (
            view_treebank(network, tokeniser, _sample(treebank(split), limit, seed), seed, f"Treebank, {split}")
            for split in ("dev", "test")
        )
        answers |= grammatical(dev, test, sections, seed)
        drawn = examples(network, tokeniser, test.sentences, answers.get("relations", []))
    if "coreference" in sections:
        chosen, scored = (_sample(mentions(split), limit, seed) for split in ("dev", "test"))
        answers["coreference"] = coreference(network, tokeniser, chosen, scored, seed)
    if "negation" in sections:
        said, denied = (_sample(negated(split), limit, seed) for split in ("dev", "test"))
        answers["negation"] = negation(network, tokeniser, said, denied, seed)
    return {
        "layers": network.layers,
        "heads": int(network.inner.config.num_attention_heads),
        "sections": {name: answers[name] for name in PROBES if name in answers},
        "examples": drawn,
    }


def grammatical(dev: TreebankView, test: TreebankView, sections: Sequence[str], seed: int = 0) -> dict[str, Any]:
    """The results of the sections about a treebank."""
    answers: dict[str, Any] = {}
    if "speech" in sections:
        answers["speech"] = speech(test, seed)
    if "relations" in sections:
        answers["relations"] = relations(dev, test, seed)
    if "pairs" in sections:
        answers["pairs"] = pairs(dev, test, seed)
    return answers


def _sample(items: Sequence[_Item], limit: int | None, seed: int) -> list[_Item]:
    """A random sample of the items in their order; all where there are no more."""
    if limit is None or limit >= len(items):
        return list(items)
    return [items[index] for index in sorted(Random(seed).sample(range(len(items)), limit))]
