"""Small corpora, and small players of both kinds: nothing is fetched."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from assay.data.corpora import corpus
from assay.data.examples import Corpus, Example, thinned
from assay.models.config import Architecture, Training
from assay.models.hf_attention import quiet
from assay.models.hf_finetuning import FineTuning
from assay.models.recipes import Recipe
from assay.rationales.trainers import Rationalising
from tests import pretrained

SHORT = Training(epochs=2, patience=2, batch_size=8, learning_rate=1e-2)
OURS = Recipe(Architecture(encoder="average", embedding=6, hidden=4, alignment_size=4), training=SHORT)
MARKED = (("good", 1), ("fun", 1), ("bad", 0), ("dull", 0))


@cache
def phrases() -> Corpus:
    """Some planted texts."""
    texts = thinned(corpus("planted:phrase"), 24, 0)
    return replace(texts, dev=texts.dev[:12], test=texts.test[:12])


@cache
def films() -> Corpus:
    """Texts in words that the small tokenizer knows whole, or in letters; the deciding word is marked."""

    def example(place: int) -> Example:
        word, label = MARKED[place % 4]
        before = "this film is " + "very " * (place % 3)
        text = f"{before}{word} unwatchable"
        return Example(text, label, ((len(before), len(before) + len(word)),))

    texts = tuple(example(place) for place in range(40))
    return Corpus("films", ("bad", "good"), texts[:16], texts[16:28], texts[28:])


@cache
def questions() -> Corpus:
    """The same with a question that names a word; the class is whether that word and the deciding one are alike."""

    def pair(example: Example, place: int) -> Example:
        word, said = MARKED[place % 3]
        asked = f"is it {word} ?"
        return replace(example, query=asked, query_evidence=((6, 6 + len(word)),), label=int(said == example.label))

    splits = {
        name: tuple(pair(each, place) for place, each in enumerate(getattr(films(), name)))
        for name in ("train", "dev", "test")
    }
    return replace(films(), name="questions", **splits)


def encoder(folder: Path, architecture: str = "bert") -> str:
    """A random encoder with its tokenizer, stored as the library does."""
    import torch
    import transformers

    torch.manual_seed(0)
    with quiet():
        inner = transformers.AutoModel.from_config(pretrained.configuration(architecture, 2), add_pooling_layer=False)
        inner.save_pretrained(folder)
        pretrained.tokenizer(architecture).save_pretrained(folder)
    return str(folder)


def wanted(recipe: str = "lei", base: Recipe | FineTuning = OURS, **options) -> Rationalising:
    return Rationalising(recipe, base, **options)
