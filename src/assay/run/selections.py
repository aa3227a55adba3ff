"""What the selections of a model are worth on the test texts of a corpus, as plain numbers with texts to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from assay import __version__
from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.models import store
from assay.models.store import Opened
from assay.rationales.collapse import collapse
from assay.rationales.decoding import RULES
from assay.rationales.measuring import CRITIC, Selected, measured, pooled, selected
from assay.rationales.rationaliser import Rationaliser
from assay.run.kept import finite
from assay.run.listings import recipes
from assay.run.summaries import device_of
from assay.run.versions import versions

FORMAT = "assay-rationales-1"
SHOWN = 8  # texts of either kind, decided right and decided wrong, on the page


def examined(model: Opened, corpus: Corpus, seed: int = 0, limit: int | None = None) -> dict[str, Any]:
    """What the selections of a model on the test texts are worth, as plain numbers, with some of them to look at."""
    network = model.network
    assert isinstance(network, Rationaliser)
    texts = _sample(corpus.test, limit, seed)
    rows, skipped = tokenise([example for _, example in texts], model.tokeniser, model.tokeniser.options.longest)
    if not rows:
        raise AssayError(f"No test text of {corpus.name!r} can be measured: they are empty or too long for this model.")
    found = selected(network, rows)
    trained = model.history["rationalising"]
    whole: dict[str, Any] = finite(
        {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"assay": __version__} | versions(),
            "device": device_of(model),
            "command": "assay.rationalise(...) in Python",
            "recipe": {
                "name": trained["recipe"],
                "meaning": recipes()[trained["recipe"]][0],
            },
            "selecting": _selecting(network),
            "reads": network.rules.reads,
            "critic": CRITIC in network.players.readers,
            "model": {
                **network.facts,
                "parameters": network.parameter_count,
                "sha256": store.fingerprint(network),
                **{name: model.history[name] for name in ("epochs", "best_epoch", "best_dev", "shares")},
            },
            "corpus": {
                "name": corpus.name,
                "train": len(corpus.train),
                "test": len(corpus.test),
                "measured": len(rows),
                "skipped": skipped,
                "marked": sum(each.row.truth is not None and bool(each.row.truth.any()) for each in found),
                "planted": any(example.planted for _, example in texts),
                "majority": _majority(corpus),
            },
            "classes": list(model.classes),
            "measures": measured(found, seed),
            "collapse": collapse(found, model.history["shares"], _majority(corpus)),
            "pooled": pooled(found, len(model.classes)),
            "texts": [_text(each, texts, model.classes) for each in found],
            "examples": [_example(each, texts, model.classes) for each in _some(found, seed)],
        }
    )
    return whole


def _selecting(network: Rationaliser) -> dict[str, Any]:
    """The rule by which words are selected, and what is read in place of others."""
    rules = network.rules
    return {
        "units": asdict(rules.units),
        **asdict(rules.decoding),
        "meaning": RULES[rules.decoding.rule],
        "masks": rules.masks,
        "reading": "learnt" if "blank" in network.players.extras else rules.reading,
    }


def _sample(examples: Sequence[Example], limit: int | None, seed: int) -> list[tuple[int, Example]]:
    """Some of the texts with their numbers, in their order."""
    if limit is not None and limit < 1:
        raise AssayError(f"At least one text must be measured, not {limit}.")
    if limit is None or limit >= len(examples):
        return list(enumerate(examples))
    places = np.random.default_rng(seed).choice(len(examples), limit, replace=False)
    return [(int(place), examples[place]) for place in np.sort(places)]


def _majority(corpus: Corpus) -> float:
    """How often the class that is most frequent in training is right."""
    counts = np.bincount([example.label for example in corpus.train])
    return (
        float(np.mean([example.label == counts.argmax() for example in corpus.test])) if corpus.test else float("nan")
    )


def _some(found: Sequence[Selected], seed: int) -> list[Selected]:
    """Texts to look at, drawn by the seed: right decisions and wrong ones, those with marks first."""
    order = np.random.default_rng(seed).permutation(len(found)).tolist()
    shuffled = [found[place] for place in order]
    shuffled.sort(key=lambda each: each.row.truth is None or not bool(each.row.truth.any()))
    right = [each for each in shuffled if each.predicted == each.row.label]
    wrong = [each for each in shuffled if each.predicted != each.row.label]
    return right[:SHOWN] + wrong[:SHOWN]


def _text(each: Selected, texts: Sequence[tuple[int, Example]], classes: Sequence[str]) -> dict[str, Any]:
    """One decision, and the characters that were read for it."""
    number, _ = texts[each.row.index]
    spans = each.row.spans[each.kept].tolist()
    return {
        "text": number,
        "label": classes[each.row.label],
        "predicted": classes[each.predicted],
        "probability": round(float(each.probabilities.max()), 6),
        "selected": spans,
    }


def _example(each: Selected, texts: Sequence[tuple[int, Example]], classes: Sequence[str]) -> dict[str, Any]:
    """The same with the text itself."""
    number, example = texts[each.row.index]
    marks = None if each.row.truth is None else each.row.truth.tolist()
    return _text(each, texts, classes) | {
        "text": example.text,
        "number": number,
        "query": example.query,
        "starts": each.row.spans[:, 0].tolist(),
        "ends": each.row.spans[:, 1].tolist(),
        "kept": each.kept.tolist(),
        "chance": [round(chance, 4) for chance in each.chance.tolist()],
        "marked": marks,
    }
