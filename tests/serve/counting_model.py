"""A live_model without a model: the more attention on "good", the likelier is "yes"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.errors import AssayError
from assay.intervene.edits import ACTS, Act


class CountingModel:
    """Answers at once, for texts of any length; what it was asked is kept."""

    def __init__(self, classes: tuple[str, str] = ("yes", "no"), **about: Any) -> None:
        self.classes = classes
        self.asked: list[tuple[Any, ...]] = []
        self.trees: list[str | None] = []
        self.changes = about

    @property
    def about(self) -> dict[str, Any]:
        described = {"name": "counted", "classes": list(self.classes), "paired": False, "device": "cpu"}
        attends = {"attention": "pooled", "items": "words", "layers": 0, "heads": 0, "acts": dict.fromkeys(ACTS)}
        explainers = [
            {"name": "attention", "meaning": "The weights.", "why_not": None},
            {"name": "gradient", "meaning": "The slope.", "why_not": None},
            {"name": "rollout", "meaning": "The layers.", "why_not": "The model has no layers."},
        ]
        usual = {"explainers": explainers, "usual": ["attention"], "description": "counts words", "trees": ["hedge"]}
        return described | attends | usual | self.changes

    def explain(
        self, text: str, query: str | None, explainers: Sequence[str], target: str | None, tree: str | None = None
    ) -> dict[str, Any]:
        self.asked.append(("explain", text, query, tuple(explainers), target))
        self.trees.append(tree)
        words = text.split()
        if "refuse" in words:
            raise AssayError("This text is refused.")
        before = self._answer(words, self._observed(words))
        predicted = max(before, key=lambda name: before[name])
        scores = {name: [float(word == "good") - 0.5 * (word == "bad") for word in words] for name in explainers}
        found = {"text": text, "query": query, "spans": [], "words": words, "predicted": predicted}
        more = {"probabilities": before, "scores": scores, "target": target or predicted, "left_out": {}}
        return found | more | {"notes": {name: {} for name in scores}, "command": f"assay explain {text!r}"}

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        self.asked.append(("attend", text, query, act))
        words = text.split()
        observed = self._observed(words)
        weights = self._weights(observed, act)
        before, after = self._answer(words, observed), self._answer(words, weights)
        first, last = (max(each, key=lambda name: each[name]) for each in (before, after))
        moved = {"tvd": abs(before[self.classes[0]] - after[self.classes[0]]), "jsd": 0.1, "jsd_upper": None}
        where = {"layer": act.layer, "head": act.head, "place": act.place, "elsewhere": 0.0}
        items = {"words": words, "items": words, "item_of": list(range(len(words))), "chosen": list(act.items)}
        answers = {"before": before, "after": after, "predicted_before": first, "predicted_after": last}
        said = {"kind": "exact", "note": f"Did {act.kind}.", "command": f"assay attend --act {act.kind}"}
        return items | answers | moved | where | said | {"observed": observed, "weights": weights}

    def _observed(self, words: list[str]) -> list[float]:
        return [1 / len(words)] * len(words)

    def _weights(self, observed: list[float], act: Act) -> list[float]:
        given = dict(act.weights) if act.kind == "set" else dict.fromkeys(act.items, 0.0)
        rest = (1 - sum(given.values())) / max(1, len(observed) - len(given))
        return [given.get(item, rest) for item in range(len(observed))]

    def _answer(self, words: list[str], weights: list[float]) -> dict[str, float]:
        share = sum(weight for word, weight in zip(words, weights, strict=True) if word == "good")
        return dict(zip(self.classes, (share, 1 - share), strict=True))
