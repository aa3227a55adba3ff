"""Made-up probes of heads, as `assay probe` leaves them, with all that can go wrong in words."""

from __future__ import annotations

from typing import Any

import numpy as np

HOSTILE = "<script>alert(1)</script>"
TAGS = ["NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "AUX", "CCONJ", "PUNCT", "PROPN", "NUM", "X"]
NAMES = ("nsubj", "obj", "det", "amod", "advmod", "case", "aux", "conj", "nmod", "obl", "root:odd", "cc")


def synthetic_probe(
    layers: int = 6, heads: int = 12, relations: tuple[str, ...] = NAMES, seed: int = 0, leads: bool = True
) -> dict[str, Any]:
    """A probe of every section; where nothing `leads`, every head is worse than the fixed offset."""
    random = np.random.default_rng(seed)
    found = [
        _relation(random, name, direction, layers, heads, leads)
        for name in relations
        for direction in ("to governor", "to dependent")
    ]
    return {
        "format": "assay-probe-2",
        "created": "2026-11-15T10:00:00Z",
        "command": "assay probe --model minilm --out '<b>out</b>'",
        "versions": {"assay": "0.1.0", "torch": "2.13.0"},
        "device": "cpu",
        "seconds": 61.5,
        "model": {"name": "minilm", "description": "BertModel, 6 layers of 12 heads", "parameters": 22_565_376},
        "left_out": {},
        "layers": layers,
        "heads": heads,
        "sections": {
            "relations": found,
            "speech": _speech(random, layers, heads),
            "coreference": _coreference(random, layers, heads),
            "negation": _negation(random, layers, heads),
            "pairs": _pairs(),
            "importance": _importance(random, layers, heads),
            "concepts": CONCEPTS,
        },
        "examples": [_example(random, words) for words in SENTENCES],
    }


SENTENCES = (
    (["The", "old", "man", "saw", HOSTILE, "in", "the", "park", "."], [2, 2, 3, -1, 3, 7, 7, 3, 3]),
    (["Nobody", "read", "Donaudampfschifffahrtsgesellschaft", "سلام", '"quoted"', "&amp;"], [1, -1, 1, 2, 2, 1]),
)


CONCEPTS = {
    "level": "hidden",
    "runs": 20,
    "others": 200,
    "corpus": "mine.csv",
    "rows": [
        {"concept": concept, "class": "positive", "examples": 30, "n": 250, "score": score, "low": score - 0.04,
         "high": score + 0.02, "random": 0.51, "random_low": 0.1, "random_high": 0.93, "p": p, "significant": p < 0.01,
         "accuracy": 0.9}
        for concept, score, p in (("praise", 0.97, 0.0001), (HOSTILE, 0.55, 0.6))
    ],
}  # fmt: skip


def _square(random: np.random.Generator, layers: int, heads: int, top: float = 0.5) -> list[list[float]]:
    return np.round(random.beta(1.2, 4, (layers, heads)) * top, 4).tolist()


def _relation(
    random: np.random.Generator, name: str, direction: str, layers: int, heads: int, leads: bool
) -> dict[str, Any]:
    every = np.array(_square(random, layers, heads))
    layer, head = int(random.integers(layers)), int(random.integers(heads))
    offset = float(random.uniform(0.2, 0.5))
    accuracy = min(0.97, offset + float(random.uniform(0.01, 0.45))) if leads else offset - 0.15
    every[layer, head] = accuracy
    control = float(random.uniform(0.05, 0.15))
    return {
        "relation": name,
        "direction": direction,
        "n": int(random.integers(20, 3000)),
        "n_dev": int(random.integers(20, 3000)),
        "layer": layer,
        "head": head,
        "accuracy": accuracy,
        "low": accuracy - 0.03,
        "high": min(1.0, accuracy + 0.03),
        "dev_accuracy": accuracy,
        "offset": int(random.integers(-3, 4)),
        "offset_accuracy": offset,
        "control_accuracy": control,
        "control_low": control - 0.02,
        "control_high": control + 0.02,
        "chance": 0.06,
        "every": every.tolist(),
    }


def _speech(random: np.random.Generator, layers: int, heads: int) -> dict[str, Any]:
    uniform = random.dirichlet(np.ones(len(TAGS)) * 3)
    shares = random.dirichlet(uniform * 12, (layers, heads))
    control = random.dirichlet(uniform * 400, (layers, heads))
    return {
        "n": 25_000,
        "tags": TAGS,
        "share": shares.tolist(),
        "uniform": uniform.tolist(),
        "control": control.tolist(),
    }


def _coreference(random: np.random.Generator, layers: int, heads: int) -> dict[str, Any]:
    return {
        "n": 2000,
        "layer": 3,
        "head": 2,
        "accuracy": 0.61,
        "low": 0.59,
        "high": 0.63,
        "nearest_accuracy": 0.52,
        "control_accuracy": 0.5,
        "confusion": (0.5 + np.array(_square(random, layers, heads))).tolist(),
        "best_confusion": 0.51,
        "every": _square(random, layers, heads, 0.6),
    }


def _negation(random: np.random.Generator, layers: int, heads: int) -> dict[str, Any]:
    return {
        "n": 1800,
        "sentences": 264,
        "layer": 0,
        "head": 1,
        "accuracy": 0.2,
        "low": 0.18,
        "high": 0.22,
        "offset": -1,
        "offset_accuracy": 0.21,
        "control_accuracy": 0.06,
        "every": _square(random, layers, heads, 0.3),
    }


def _pairs() -> dict[str, Any]:
    shared = {"accuracy": 0.84, "low": 0.83, "high": 0.85, "majority": 0.5, "control": 0.52}
    return {"binary": {"n": 9000, **shared}, "relations": {"n": 4500, "classes": list(NAMES), **shared}}


def _importance(random: np.random.Generator, layers: int, heads: int) -> dict[str, Any]:
    size, curve = layers * heads, []
    for step in range(11):
        share = step / 10
        curve.append(
            {
                "pruned": round(share * size),
                "share": share,
                "accuracy": 0.86 - 0.3 * share**4,
                "low": 0.84 - 0.3 * share**4,
                "high": 0.88 - 0.3 * share**4,
                "random": 0.86 - 0.3 * share**1.5,
                "reverse": 0.86 - 0.3 * share**0.5,
            }
        )
    square = (np.array(_square(random, layers, heads)) + 0.01).tolist()
    return {
        "n": 1000,
        "n_dev": 500,
        "importance": square,
        "curve": curve,
        "accuracy": 0.86,
        "majority": 0.5,
        "draws": 5,
        "normalised": True,
        "corpus": "sst",
    }


def _example(random: np.random.Generator, given: tuple[list[str], list[int]]) -> dict[str, Any]:
    words, governors = given
    size = len(words)
    blurred = random.dirichlet(np.ones(size) * 0.3, size) * 0.8
    sharp = 0.1 * blurred
    for place, governor in enumerate(governors):
        sharp[place, max(governor, 0)] += 0.7
    heads = [
        {"layer": 2, "head": 4, "title": "nsubj, to governor", "weights": sharp.tolist()},
        {"layer": 0, "head": 0, "title": f"det {HOSTILE}", "weights": blurred.tolist()},
        {"layer": 5, "head": 11, "title": "negation", "weights": np.zeros((size, size)).tolist()},
    ]
    return {"words": words, "governors": governors, "relations": ["dep"] * size, "heads": heads}
