"""What was audited and how, and what the words on the page mean."""

from __future__ import annotations

import hashlib
from typing import Any

from assay.grading.grade import TRUST
from assay.lookup import items
from assay.records import Record
from assay.writing import count

SCORES = {"accuracy": "accuracy", "macro_f1": "macro F1", "auc": "AUC"}
KINDS = {
    "exact": "exact for each text, neither drawn nor searched for",
    "to rounding": "computed for each text, neither drawn nor searched for, in single precision: differences below its "
    "rounding can change an order",
    "sample": "estimated for each text from random draws",
    "lower bound": "lower bounds for each text, the best that a search found",
    "search": "those of a search, which reaches a lower bound, beside the furthest attention, which is exact for two "
    "classes, a bracket for three and a lower bound for more",
    "trained": "those of models that were trained once each",
    "bracket": "brackets for each text, a value that is reached and one that is certified not to be exceeded",
}
"""What is said of numbers of each kind."""

ATTENDED = {
    "flat": "over all words of a text",
    "hierarchical": "over the words of each sentence, then over sentences; what is done to attention is done to that "
    "over sentences",
    "paired": "over the words of a text, given the question or hypothesis",
    "structured": "several times over all words of a text; what is done to attention is done to the mean weight of "
    "each word over the rows",
    "spans": "over all spans of a few words, each of which shares its weight among its words; what is done to "
    "attention is done to that of words",
    "aspect": "over the words of a text, given the aspect that is asked about",
    "transformer": "between all places of a text, in every layer and head; what is done to attention is done to all of "
    "them, markers included",
    "pooled transformer": "over the words of a text, above the layers of a transformer; what is done to attention is "
    "done to this one alone",
}
"""What the attention of each shape of model is over."""

CLASSES = 20
"""Of more classes than this only the first are named."""

GLOSSARY = {
    "τ (Kendall)": "How alike two rankings of the same words are: 1 the same, 0 unrelated, −1 reversed.",
    "TVD": "Total variation distance: half the summed change of the class probabilities; with two classes, "
    "by how much the probability moves.",
    "JSD": "Jensen–Shannon divergence: how different two ways of spreading attention are, from 0 (the "
    "same) to 0.69 (no {item} in common).",
    "ΔJS": "How much further the output moves (Jensen–Shannon divergence, 0 to 0.69) without the {item} on top than "
    "without the other one; below 0 the other one matters more.",
    "economy": "The fewest words that some ranking takes to keep the decision, or to lose it, as a share of how many "
    "of its highest words this one takes; the mean of both. 1 is as few as the best.",
    "AUPRC": "Area under the precision–recall curve: 1 when all deciding words are ranked first; random "
    "scores reach about the share of deciding words, more in short texts.",
    "95 % interval": "A range that would hold the true mean in 95 of 100 such audits with other texts of the "
    "same kind.",
    "null": "What the same measure gives for scores that know nothing; an explainer has to beat it.",
    "comprehensiveness": "How far the probability of the predicted class falls when the highest words (1, 5, 10, 20 "
    "and 50 % of them; the mean of the five falls) are deleted.",
    "sufficiency": "How far that probability falls when only the highest words are left; 0 means that they do alone.",
    "MoRF, LeRF": "Area under that probability while words are deleted, the highest first (MoRF, low is good) or the "
    "lowest first (LeRF, high is good).",
    "trust": f"A{TRUST.removeprefix('Trust is a')}",
    "ROAR": "Remove and retrain: the accuracy of a model that is trained anew on texts without the highest words.",
    "tied (≈)": "Not clearly worse than the best, over the same texts and all explainers compared at once: where all "
    "are equally good, any is called worse in no more than 5 of 100 such audits (a model confidence set).",
    "passes": "How often the model reads a text forward, and backward for gradients, to explain it once.",
    "smallest set": "The fewest {items} that change the decision when their attention is set to zero and the others "
    "share it; exact, as the decoder is linear. A text whose decision no set changes has none.",
    "normalised entropy": "How evenly something is spread over the words of a text: 1 all alike, 0 all on one; divided "
    "by the most that a text of that length can have.",
    "sparsegen, λ": "A way to make weights from scores that can set some to exactly zero, the more the closer λ comes "
    "to 1; λ = 0 is sparsemax.",
    "information": "Mutual information of a state and the word at its place, in bits: how much better the word can be "
    "told from its state than without it.",
    "seed": "What all random choices in training start from; models of other seeds are trained alike in all else.",
    "significant": "Share of texts whose τ differs from 0 at p ≤ 0.05; it grows with the length of the texts.",
}

ALWAYS = ("τ (Kendall)", "95 % interval", "null", "tied (≈)", "passes", "significant")
"""Words that every page explains; the others where an audit uses them."""


def glossary(record: Record) -> dict[str, str]:
    """What the words on this page mean: those of the field, and the measures that explain themselves."""
    stories, noun = record.stories.values(), items(record)
    used = {*ALWAYS, *(word for story in stories for word in story.terms)} if stories else set(GLOSSARY)
    own = {word: meaning for story in stories for word, meaning in story.words.items()}
    told = {word: meaning for word, meaning in GLOSSARY.items() if word in used}
    return {word: noun.named(str(meaning)) for word, meaning in (told | own).items()}


def facts(record: Record) -> list[tuple[str, str]]:
    """What was audited, as pairs of a name and a text; what the record does not know is left out."""
    corpus, model = record.summary["corpus"], record.summary.get("model", {})
    test = model.get("test") or {}
    scores = [f"{name} {test[key]:.3f}" for key, name in SCORES.items() if test.get(key) is not None]
    sizes = [f"{count(corpus[key])} {key}" for key in ("train", "dev", "test") if corpus.get(key) is not None]
    skipped = [f"{reason} ({count(n)})" for reason, n in (corpus.get("skipped") or {}).items()]
    return _known(
        {
            "Model": model.get("description"),
            "Attention": ATTENDED.get(model.get("shape", "")),
            "Parameters": count(model["parameters"]) if model.get("parameters") else None,
            "On the test set": ", ".join(scores),
            "Trained for": f"{model['epochs']} epochs" if model.get("epochs") else None,
            "Corpus": corpus["name"] + (f" ({corpus['licence']})" if corpus.get("licence") else ""),
            "Classes": _named(corpus["classes"]),
            "Texts": ", ".join(sizes),
            "Audited": f"{count(corpus.get('audited', record.examples.num_rows))} {corpus.get('split', 'test')} texts",
            "Skipped": ", ".join(skipped) or "none",
        }
    )


def left_out(record: Record) -> list[tuple[str, str]]:
    """The explainers that cannot serve the model, those with the same reason together, as pairs of names and reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in (record.summary.get("left_out") or {}).items():
        reasons.setdefault(reason, []).append(name)
    return [(", ".join(names), reason) for reason, names in reasons.items()]


def origins(record: Record) -> list[tuple[str, str]]:
    """What is needed to make the same audit again, as pairs of a name and a text."""
    summary = record.summary
    model, plan = summary.get("model", {}), summary.get("plan", {})
    history = model.get("history") or {}
    seconds = summary.get("explainer_seconds", {}) | {
        name: about.get("seconds") for name, about in summary["audits"].items()
    }
    return _known(
        {
            "Made": summary.get("created"),
            "Took": f"{summary['seconds']:.1f} s" if summary.get("seconds") is not None else None,
            "of which": ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items() if spent),
            "Seed": None if plan.get("seed") is None else str(plan["seed"]),
            "Seed of the training": _seed(history),
            "Model": f"sha256 {model['sha256']}" if model.get("sha256") else None,
            "Training texts": f"sha256 {history['data']}…" if history.get("data") else None,
            "Audited texts": f"sha256 {_digest(record)}" if record.examples.num_rows else None,
            "Versions": ", ".join(f"{name} {version}" for name, version in summary.get("versions", {}).items()),
            "Platform": ", ".join(filter(None, (summary.get("platform"), summary.get("device")))),
        }
    )


def _seed(history: dict[str, Any]) -> str | None:
    """What the training of the model started from, where that is known."""
    recipe = history.get("recipe") or {}
    seed = (recipe.get("training") or {}).get("seed")
    return None if seed is None else str(seed)


def _digest(record: Record) -> str:
    """One number for all audited texts, their questions and labels, in their order."""
    digest = hashlib.sha256()
    columns = [record.examples[name].to_pylist() for name in ("text", "query", "label") if name in _columns(record)]
    for parts in zip(*columns, strict=True):
        digest.update(repr(parts).encode())
    return digest.hexdigest()


def _columns(record: Record) -> list[str]:
    return list(record.examples.column_names)


def _named(classes: list[str]) -> str:
    """All classes, or the first of very many and how many more there are."""
    more = f" and {count(len(classes) - CLASSES)} more" if len(classes) > CLASSES else ""
    return ", ".join(map(str, classes[:CLASSES])) + more


def _known(pairs: dict[str, str | None]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in pairs.items() if text]
