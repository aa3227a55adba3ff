"""An answer about selections, invented, with words in it that could break a page."""

from __future__ import annotations

from typing import Any

from tests.report.test_hybrid_view import HOSTILE


def measure(mean: float, spread: float = 0.02, n: int = 100) -> dict[str, Any]:
    return {"mean": mean, "low": mean - spread, "high": mean + spread, "n": n}


def example(words: int = 9, predicted: str = "good", label: str = "good", marks: bool = True) -> dict[str, Any]:
    """A text whose words are numbered; each third one is selected, each fourth one marked."""
    pieces = [HOSTILE, *(f"word{place}" for place in range(1, words))]
    starts, place = [], 0
    for piece in pieces:
        starts.append(place)
        place += len(piece) + 1
    kept = [place % 3 == 0 for place in range(words)]
    return {
        "text": " ".join(pieces),
        "number": 3,
        "query": None,
        "label": label,
        "predicted": predicted,
        "probability": 0.75,
        "starts": starts,
        "ends": [start + len(piece) for start, piece in zip(starts, pieces, strict=True)],
        "kept": kept,
        "chance": [0.5] * words,
        "marked": [place % 4 == 0 for place in range(words)] if marks else None,
        "selected": [],
    }


def pair(**changes: Any) -> dict[str, Any]:
    """A text and a query; the first word of each is aligned, and the fourth of the text with the third of the query."""
    text, asked = example(), example(4)
    aligned = [(0, 0, [-2.5, 2.5]), (3, 2, [0.25, -0.25])]
    side = {name: asked[name] for name in ("starts", "ends", "marked")}
    return {
        **text,
        "query": asked["text"],
        "asked": side | {"kept": [place in (0, 2) for place in range(4)]},
        "kept": [place in (0, 3) for place in range(9)],
        "pairs": [{"word": word, "asked": met, "votes": votes} for word, met, votes in aligned],
        **changes,
    }


def aligned() -> dict[str, Any]:
    """What the page of a model that aligns words is made of."""
    how = selections()["selecting"] | {"rule": "aligned", "transport": {"most": 3, "price": 0.2}}
    del how["rate"]
    examples = [pair(), pair(pairs=[], kept=[False] * 9), pair(predicted="bad")]
    return selections(recipe={"name": "transport", "meaning": "words meet"}, selecting=how, examples=examples)


def phrased() -> dict[str, Any]:
    """What the page of a model that shows its phrases is made of."""
    how = selections()["selecting"] | {"rule": "telling", "units": {"kind": "phrase", "width": 5}}
    account = {
        "parts": {"whole": 3.21, "phrases": 0.2, "stored": -0.1},
        "phrases": [{"text": HOSTILE, "by": 0.35}, {"text": "word1 word2", "by": -0.15}],
        "stored": [{"text": f"a good film {HOSTILE}", "by": -0.1}],
    }
    parts = {"whole": 0.9, "phrases": 0.06, "stored": 0.04}
    examples = [example() | {"account": account}, example(predicted="bad") | {"account": account}]
    recipe = {"name": "selfexplain", "meaning": "phrases answer"}
    return selections(recipe=recipe, selecting=how, reads="all", parts=parts, examples=examples)


def selections(**changes: Any) -> dict[str, Any]:
    """What the page is made of."""
    means = {"accuracy": 0.9, "size": 0.2, "token_f1": 0.6, "query_f1": 0.5, "iou_f1": 0.4, "auprc": 0.7}
    means |= {"comprehensiveness": 0.35, "sufficiency": -0.01, "complement_accuracy": 0.52}
    return {
        "format": "assay-rationales-1",
        "created": "2026-01-01T00:00:00+00:00",
        "versions": {"assay": "0", "torch": "0"},
        "device": "cpu",
        "command": f"assay rationalise {HOSTILE}",
        "seconds": 12.5,
        "recipe": {"name": "lei", "meaning": "both lower the cost"},
        "selecting": {
            "units": {"kind": "token", "width": 5},
            "rule": "top",
            "rate": 0.2,
            "meaning": "the likeliest units",
            "masks": 1,
            "reading": "zero",
        },
        "reads": "selected",
        "critic": False,
        "model": {
            "description": "a model",
            "parameters": 1000,
            "sha256": "0" * 64,
            "epochs": 5,
            "best_epoch": 4,
            "best_dev": 0.9,
            "shares": [0.2],
        },
        "corpus": {
            "name": HOSTILE,
            "train": 500,
            "test": 100,
            "measured": 100,
            "skipped": {},
            "marked": 60,
            "planted": False,
            "majority": 0.5,
        },
        "classes": ["bad", "good"],
        "measures": {name: measure(mean) for name, mean in means.items()},
        "pooled": {"macro_f1": 0.89, "iou_f1_eraser": 0.42},
        "texts": [],
        "examples": [example(), example(400), example(marks=False), example(predicted="bad")],
    } | changes
