"""From a corpus with explanations to a model that answers with a sentence why, and to what such sentences are worth."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from assay import __version__
from assay.caching import finite
from assay.data.annotated import EXPLAINED, Explained, ExplainedCorpus, explained
from assay.errors import AssayError
from assay.metrics.intervals import shares
from assay.models.config import Training
from assay.rationales.selection_stories import SENTENCES
from assay.rationales.sequences import Sizes
from assay.rationales.text_explanations import Answers, School, TextExplainer, TextRecipe
from assay.rationales.text_measuring import consistency, exchanged, overlap, simulated
from assay.rationales.writers import WriterRecipe
from assay.records import versions

FORMAT = "assay-sentences-1"
SIZES = Sizes(embedding=256, hidden=192, layers=0, dropout=0.3)
TRAINING = Training(epochs=10, patience=2, batch_size=128, learning_rate=1e-3, decay=1e-2, clip=1.0)
TAKES = ("embedding", "hidden", "epochs", "batch_size", "learning_rate")
BEAMS = 4
ERASED = 1000  # texts at most of which words are erased
CORPORA = f"choose one of the corpora {', '.join(EXPLAINED)}"
SHOWN = 12  # texts on the page


def corpus_of(name: str, train_limit: int | None, seed: int) -> ExplainedCorpus:
    """A corpus with explanations, with so many training texts, drawn by the seed."""
    corpus = explained(name)
    if train_limit is None:
        return corpus
    if train_limit < 1:
        raise AssayError(f"At least one text must be trained on, not {train_limit}.")
    train, more = (
        tuple(parts[index] for index in np.sort(np.random.default_rng(seed).permutation(len(parts))[:train_limit]))
        for parts in (corpus.train, corpus.unexplained)
    )
    return replace(corpus, train=train, unexplained=more)


def recipe_of(name: str, seed: int, options: Mapping[str, Any]) -> TextRecipe:
    """How the models are trained; what decides or simulates is trained half as long, as are labels alone."""
    given = {option: value for option, value in options.items() if value is not None}
    if given.get("units") == "token":
        del given["units"]
    for option in given:
        if option not in TAKES:
            raise AssayError(
                f"--{option.replace('_', '-')} does not fit the recipe {name!r}, which takes --embedding, --hidden, "
                "--epochs, --batch-size and --learning-rate; leave it out."
            )
    sizes = replace(SIZES, **{option: given.pop(option) for option in ("embedding", "hidden") if option in given})
    training = replace(TRAINING, seed=seed, **given)
    shorter = replace(training, epochs=max(1, training.epochs // 2))
    return TextRecipe(WriterRecipe(sizes, training), WriterRecipe(sizes, shorter), labels=shorter)


def explained_in_sentences(
    corpus: ExplainedCorpus, name: str, recipe: TextRecipe, limit: int | None, folder: Path | None, device: str
) -> tuple[TextExplainer, dict[str, Any]]:
    """The trained model, and its answers, explanations and their worth as plain numbers."""
    started, seed = time.monotonic(), recipe.writer.training.seed
    if limit is not None and limit < 2:
        raise AssayError(f"At least two texts must be measured, since explanations are exchanged, not {limit}.")
    order = np.random.default_rng(seed).permutation(len(corpus.test))
    items = [corpus.test[index] for index in np.sort(order[:limit])]
    school = School.of(corpus, recipe if corpus.unexplained else replace(recipe, labels=None), folder, device)
    explainer = school.explainer(name)
    answers = explainer(items, BEAMS)
    las = simulated(school, name, (school.aside, explainer(school.aside, BEAMS)), (items, answers), recipe.decider)
    simulated_by = {"las": {"mean": las.las, "low": las.low, "high": las.high, "n": sum(las.count)}}
    measures = _measures(school, explainer, answers, items) | simulated_by
    history = explainer.writer.history
    answer: dict[str, Any] = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"assay": __version__} | versions(),
        "device": device,
        "command": "assay.rationalise(...) in Python",
        "recipe": {"name": name, "story": SENTENCES[name].json()},
        "model": {
            "parameters": sum(each.numel() for each in explainer.writer.network.parameters()),
            "beams": BEAMS,
            **{each: history[each] for each in ("epochs", "best_epoch", "best_dev")},
        },
        "corpus": {
            "name": corpus.name,
            "train": len(corpus.train),
            "labelled": len(corpus.unexplained),
            "test": len(corpus.test),
            "measured": len(items),
            "majority": float(np.bincount([item.example.label for item in corpus.train]).max() / len(corpus.train)),
        },
        "classes": list(corpus.classes),
        "measures": {each.name: measures[each.name] for each in SENTENCES[name].measures},
        "strata": list(las.count),
        "pooled": _overlap(school, answers, items),
        "texts": [_text(corpus, answers, items, index) for index in range(len(items))],
        "examples": [
            _text(corpus, answers, items, index) | _source(corpus, items[index])
            for index in np.random.default_rng(seed).permutation(len(items))[:SHOWN].tolist()
        ],
        "seconds": round(time.monotonic() - started, 1),
    }
    whole: dict[str, Any] = finite(answer)
    return explainer, whole


def _measures(
    school: School, explainer: TextExplainer, answers: Answers, items: Sequence[Explained]
) -> dict[str, dict[str, Any]]:
    """Shares of texts with their exact 95 % intervals."""
    labels = np.array([item.example.label for item in items])
    moved = exchanged(explainer, answers, items, school.reader())
    first = Answers(answers.labels[:ERASED], answers.explanations[:ERASED])
    erased = consistency(explainer, first, items[:ERASED], beams=BEAMS)
    flags = {
        "accuracy": answers.labels == labels,
        "own": moved.own,
        "others": moved.others,
        "mentioned": erased.mentioned,
        "random": erased.others,
    }
    found = {}
    for name, values in flags.items():
        share = shares(values[:, None].astype(np.float64))
        ends = zip(("mean", "low", "high"), (share.mean, share.low, share.high), strict=True)
        found[name] = {end: float(value[0]) for end, value in ends} | {"n": len(values)}
    return found


def _overlap(school: School, answers: Answers, items: Sequence[Explained]) -> dict[str, float]:
    """BLEU and chrF against what people wrote, where sacrebleu is installed."""
    pairs = zip(answers.explanations, items, strict=True)
    written = [(why, item.explanations) for why, item in pairs if item.explanations]
    try:
        return overlap([why for why, _ in written], [people for _, people in written], school.tokeniser)
    except AssayError:
        return {}


def _text(corpus: ExplainedCorpus, answers: Answers, items: Sequence[Explained], index: int) -> dict[str, Any]:
    label = int(answers.labels[index])
    return {
        "label": corpus.classes[items[index].example.label],
        "predicted": corpus.classes[label] if label >= 0 else "none",
        "explanation": answers.explanations[index],
    }


def _source(corpus: ExplainedCorpus, item: Explained) -> dict[str, Any]:
    return {
        "parts": list(corpus.parts),
        "text": item.example.text,
        "query": item.example.query or "",
        "people": list(item.explanations),
    }
