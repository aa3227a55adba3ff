"""Answers about training texts, invented, with words in them that could break a page."""

from __future__ import annotations

from typing import Any

from tests.report.test_hybrid_view import HOSTILE, answer

ABOUT: dict[str, Any] = {
    "format": "assay-influence-1",
    "created": "2026-01-01T00:00:00+00:00",
    "versions": {"assay": "0", "torch": "0"},
    "model": {"description": "a model", "parameters": 1000, "sha256": "0" * 64},
    "corpus": {"name": HOSTILE, "train": 6920, "course": True},
    "command": f"assay influence {HOSTILE}",
    "seconds": 1.5,
}


def row(place: int, score: float, label: str = "positive", predicted: str = "positive", **more: Any) -> dict[str, Any]:
    text = f"training text {place} {HOSTILE} " + "word " * 40
    given = {"place": place, "text": text, "query": None, "label": label, "predicted": predicted, "probability": 0.5}
    return given | {"score": score, "error": None} | more


def traced(target: str = "margin") -> dict[str, Any]:
    """Of one text."""
    sign = -1 if target == "margin" else 1
    return ABOUT | {
        "kind": "text",
        "text": f"i loved it {HOSTILE}",
        "query": None,
        "classes": ["negative", "positive"],
        "predicted": "positive",
        "asked": "positive",
        "probabilities": {"negative": 0.1, "positive": 0.9},
        "target": target,
        "value": 2.2,
        "supporting": [row(1, 0.5 * sign), row(2, 0.25 * sign, predicted="negative", error=0.01)],
        "opposing": [row(3, -0.3 * sign, "negative")],
        "totals": [1.0, -0.5],
        "method": {"name": "dual", "meaning": "a step", "covered": 0.5, "notes": {"damping": 0.01}},
        "tokens": answer(),
        "sentence": f"I answer positive because it reminds me of “{HOSTILE}”.",
        "swap": {
            "word": HOSTILE,
            "by": "dull",
            "text": f"i dull it {HOSTILE}",
            "source": row(4, 0.0, "negative"),
            "before": 0.9,
            "after": 0.2,
            "predicted": "negative",
            "flipped": True,
        },
        "checks": {
            "lds": {
                "methods": [{"method": "dual", "lds": 0.7, "low": 0.6, "high": 0.8, "seconds": 1.0, "covered": 1.0}],
                "subsets": 20,
                "share": 0.5,
                "queries": 50,
            },
            "removal": {
                "rows": [
                    {"method": "dual", "count": 20, "predicted": -1.0, "measured": -0.8, "low": -1.0, "high": -0.6},
                    {"method": "chance", "count": 20, "predicted": None, "measured": 0.0, "low": -0.1, "high": 0.1},
                ],
                "queries": 15,
            },
        },
    }


def suspected() -> dict[str, Any]:
    """Of doubtful labels."""
    rows = [row(1, 3.0, "positive", "negative", loss=3.0), row(2, 1.0, loss=1.0)]
    made = {"kind": "mislabelled", "classes": ["negative", "positive"], "suspects": rows}
    spans = {"before": [0.8, 0.7, 0.9], "after": [0.85, 0.75, 0.9], "gained": [0.05, -0.01, 0.1]}
    repair = {"way": "relabel", "rows": 2, "tests": 100, "folder": HOSTILE} | spans
    return ABOUT | made | {"method": {"name": "loss"}, "repair": repair}
