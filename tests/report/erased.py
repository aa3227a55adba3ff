"""Made-up attention of each example, and what erasing its words one by one, or down a ranking, does to the decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

RANKINGS = ("attention", "gradient", "product", "random", "leave_one_out")


@dataclass(frozen=True)
class Game:
    """The decision holds while the weighted margins of the kept words sum to more than 0; `empty` is without any."""

    weights: np.ndarray
    margins: np.ndarray
    empty: bool
    scores: dict[str, np.ndarray]

    def holds(self, erased: set[int]) -> bool:
        kept = [place for place in range(len(self.weights)) if place not in erased]
        return sum(self.weights[place] * self.margins[place] for place in kept) > 0 if kept else self.empty

    def needed(self, order: list[int]) -> int | None:
        """How many words of the order go until the decision changes, if it ever does."""
        return next((k for k in range(1, len(order) + 1) if not self.holds(set(order[:k]))), None)

    def best(self) -> list[int]:
        """The words by what they add, the most first: no other order is shorter."""
        return np.argsort(-self.weights * self.margins, kind="stable").tolist()


def game(place: int, size: int) -> Game:
    """The game of an example, by its number alone."""
    draw = np.random.default_rng(place)
    weights = draw.exponential(size=size) ** 2
    weights = weights / weights.sum()
    margins = draw.normal(draw.choice([0.4, 2.5]), 1, size)
    if (weights * margins).sum() <= 0:
        margins = -margins
    scores = {
        "attention": weights,
        "gradient": margins,
        "product": weights * margins * np.exp(0.3 * draw.normal(size=size)),
        "random": draw.random(size),
        "leave_one_out": weights * margins + 0.05 * draw.normal(size=size),
    }
    return Game(weights, margins, bool(draw.random() < 0.3), scores)


def smallest_set(place: int, size: int) -> list[float]:
    """1 for each word of the smallest set; all 0 where the decision never changes."""
    played = game(place, size)
    order = played.best()
    needed = played.needed(order)
    return [float(needed is not None and word in order[:needed]) for word in range(size)]


def minimal_set(example: dict[str, Any]) -> dict[str, float]:
    size = len(example["starts"])
    played = game(example["example"], size)
    orders = {name: np.argsort(-played.scores[name], kind="stable").tolist() for name in RANKINGS}
    orders["optimum"] = played.best()
    needed = {name: played.needed(order) for name, order in orders.items()}
    row: dict[str, float] = {"items": float(size)}
    for name, order in orders.items():
        k = needed[name]
        row[f"erased:{name}"] = (k or size) / size
        row[f"erased_mass:{name}"] = float(played.weights[order[:k]].sum())
        row[f"never:{name}"] = float(k is None)
    best = needed["optimum"]
    for name in RANKINGS:
        k = needed[name]
        row[f"too_many:{name}"] = math.nan if best is None else float((k or size) - best)
        row[f"optimal:{name}"] = math.nan if best is None else float(k == best)
    for one, other in permutations(RANKINGS, 2):
        first, second = (math.inf if needed[name] is None else needed[name] for name in (one, other))
        row[f"wins:{one}~{other}"] = math.nan if best is None else float(first < second)  # type: ignore[operator]
    return row


def single_weight(example: dict[str, Any]) -> dict[str, float]:
    size = len(example["starts"])
    played = game(example["example"], size)
    draw = np.random.default_rng(size)
    row: dict[str, float] = {}
    for subject in ("attention", "gradient", "product"):
        top = int(played.scores[subject].argmax())
        other = (top + 1 + int(draw.integers(max(size - 1, 1)))) % size
        flips = [not played.holds({place}) for place in (top, other)]
        gap = float(played.weights[top] - played.weights[other])
        more = 0.3 * gap**2 + float(draw.normal(0, 0.01))
        values = {
            "delta_js": more,
            "delta_weight": gap,
            "smaller": float(more < 0),
            "both": float(all(flips)),
            "top_only": float(flips == [True, False]),
            "other_only": float(flips == [False, True]),
            "neither": float(not any(flips)),
        }
        row |= {f"{measure}:{subject}": value if size > 1 else math.nan for measure, value in values.items()}
    return row


ERASED: dict[str, Callable[[dict[str, Any]], dict[str, float]]] = {
    "single_weight": single_weight,
    "minimal_set": minimal_set,
}
