"""Made-up explainers with known families, and made-up numbers of every audit for one example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

EXPLAINERS = {
    "attention": "The weights of the attention layer.",
    "gradient": "Gradient times input with attention held fixed, absolute.",
    "gradient_norm": "Length of the gradient at each embedding.",
    "input_x_gradient": "Gradient times input, signed.",
    "leave_one_out": "How far the prediction moves when the token is deleted.",
    "random": "Scores drawn at random.",
}
NOISE = {
    "attention": 2.2,
    "gradient": 0.35,
    "gradient_norm": 0.8,
    "input_x_gradient": 1.1,
    "leave_one_out": 0.0,
}
FAMILIES = {
    "integrated_gradients": ("input_x_gradient", 0.4),
    "integrated_gradients(baseline=mean)": ("input_x_gradient", 0.5),
    "smooth_gradient": ("gradient", 0.5),
    "state_gradient": ("gradient", 0.6),
    "attention_gradient": ("attention", 0.7),
    "attention_x_gradient": ("attention", 0.3),
    "attention_x_norm": ("attention", 0.2),
    "attention_rollout": ("attention", 0.9),
    "attention_flow": ("attention", 1.1),
    "chefer": ("attention", 0.4),
    "occlusion(removal=zero)": ("leave_one_out", 0.2),
    "occlusion(removal=mask)": ("leave_one_out", 0.3),
    "occlusion(removal=mean)": ("leave_one_out", 0.25),
    "occlusion_spans": ("leave_one_out", 0.5),
    "input_reduction": ("leave_one_out", 0.9),
    "relevance": ("input_x_gradient", 0.3),
    "attention_relevance": ("input_x_gradient", 0.6),
    "deep_lift": ("input_x_gradient", 0.2),
    "lime": ("leave_one_out", 0.4),
    "lime(samples=500)": ("leave_one_out", 0.35),
    "kernel_shap": ("leave_one_out", 0.3),
    "sampled_shapley": ("leave_one_out", 0.15),
    "anchors": ("leave_one_out", 1.2),
    "swaps": ("gradient", 1.0),
}
"""More explainers, each with the one whose scores it shares and how much noise of its own it has."""

MANY = (*EXPLAINERS, *FAMILIES)
SIGNED = {"input_x_gradient"} | {name for name, (origin, _) in FAMILIES.items() if origin == "input_x_gradient"}
CASCADE = ("decoder", "alignment", "encoder", "embedding", "labels")
THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
SHARES = (0.1, 0.3, 0.5)
GAINS = {"comprehensiveness": 1, "sufficiency": -1, "flip": -1, "morf": -1}
FAITHFUL = ("agreement", "truth", "erasure", "sanity", "stability", "consistency", "roar", "shortcut")
"""The audits of a corpus with planted evidence; one with human evidence has plausibility instead of truth."""


def all_scores(draw: np.random.Generator, base: np.ndarray, explainers: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The scores of every explainer; those of a family start from the same ones."""
    own = {name: _scores(draw, name, base) for name in EXPLAINERS if name in explainers or len(explainers) > 6}
    for name in explainers:
        if name in FAMILIES:
            origin, noise = FAMILIES[name]
            own[name] = own[origin] * np.exp(noise * draw.normal(size=len(base)))
    return {name: own[name] for name in explainers}


def _scores(draw: np.random.Generator, name: str, base: np.ndarray) -> np.ndarray:
    if name == "random":
        return draw.random(len(base))
    noisy = base * np.exp(NOISE[name] * draw.normal(size=len(base)))
    if name == "attention":
        return noisy / noisy.sum()
    return noisy * draw.choice([1, 1, -1], len(base)) if name == "input_x_gradient" else noisy


def agreements(scores: dict[str, np.ndarray]) -> dict[str, float]:
    """Kendall's τ as the mean product of the signs of all pairwise differences, p from the normal law.

    Of a long text the beginning is enough.
    """
    names, row = list(scores), {}
    signs = [np.sign(np.subtract.outer(values[:200], values[:200])).ravel() for values in scores.values()]
    products = np.stack(signs) @ np.stack(signs).T
    size = min(200, len(scores[names[0]]))
    for place, one in enumerate(names):
        for step, other in enumerate(names[place + 1 :], start=place + 1):
            tau = float(products[place, step] / (size * (size - 1))) if size > 1 else math.nan
            z = abs(tau) * 3 * math.sqrt(size * (size - 1)) / math.sqrt(2 * (2 * size + 5))
            row |= {f"tau:{one}~{other}": tau, f"p:{one}~{other}": math.erfc(z / math.sqrt(2))}
    return row


def found(scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    hits = truth[np.argsort(-scores)]
    precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precisions[hits].mean()), float(precisions[hits.sum() - 1])


def _quality(name: str) -> float:
    """How good an explainer is made to be, from 0 to 1."""
    origin, noise = FAMILIES.get(name, (name, 0.0))
    return 0.0 if name in ("random", "chance") else 1 / (1 + NOISE[origin] + 0.5 * noise)


ECONOMIES = {
    "attention": 0.4,
    "gradient": 0.92,
    "gradient_norm": 0.8,
    "input_x_gradient": 0.6,
    "leave_one_out": 0.97,
}
"""Of these the verdict passes the two largest and fails the two smallest."""


def _deciding(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    own = np.random.default_rng(example["example"])  # what other audits draw stays as it is
    row = {}
    for name in (*explainers, "chance"):
        origin, noise = FAMILIES.get(name, (name, 0.0))
        value = float(np.clip(ECONOMIES.get(origin, 0.35) - 0.1 * noise + own.normal(0, 0.05), 0.05, 1))
        row |= {f"economy:{name}": value, f"sufficient:{name}": value, f"necessary:{name}": value}
    return row


def _erasure(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    row: dict[str, float] = {}
    hardness = draw.normal(0, 0.1)
    for name in (*explainers, "chance"):
        good = _quality(name) + hardness + draw.normal(0, 0.15)
        falls = {share: 0.1 + (0.1 + share) * good for share in THRESHOLDS}
        values = {
            "comprehensiveness": 0.1 + 0.3 * good,
            "sufficiency": 0.4 - 0.3 * good,
            "flip": min(1.0, max(0.05, 0.7 - 0.5 * good)),
            "flipped": float(draw.random() < 0.9),
            "morf": 0.6 - 0.3 * good,
            "lerf": 0.6 + 0.2 * good,
            "log_odds": 2 * good,
        } | {f"comprehensiveness@{share:g}": fall for share, fall in falls.items()}
        row |= {f"{measure}:{name}": value for measure, value in values.items()}
    for measure, sign in GAINS.items():
        for name in explainers:
            row[f"{measure}_gain:{name}"] = sign * (row[f"{measure}:{name}"] - row[f"{measure}:chance"])
    return row


def _plausibility(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    truth, row = np.array(example["truth"]), {}
    for name in explainers:
        area, precision = found(np.abs(np.array(example[f"score:{name}"])), truth)
        names = ("token_f1", "token_precision", "token_recall", "iou_f1", "auprc", "average_precision")
        values = (precision, precision, precision, precision / 2, area, area)
        row |= {f"{measure}:{name}": value for measure, value in zip(names, values, strict=True)}
    return row


def _sanity(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    row = {}
    for name in explainers:
        left = 1.0 if name == "random" else 1 - _quality(name) / 2
        steps = [left**place + draw.normal(0, 0.1) * (left < 1) for place in range(1, len(CASCADE) + 1)]
        row |= {f"similarity_{step}:{name}": value for step, value in zip(CASCADE, steps, strict=True)}
        row[f"similarity:{name}"] = float(np.mean(steps))
    return row


def _stability(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    row = {"moved:model": float(draw.uniform(0, 0.02))}
    for name in explainers:
        values = (0.7 + 0.3 * _quality(name) * draw.random(), 0.2 * draw.random(), 0.5 * _quality(name))
        names = ("steadiness", "change", "seeds")
        row |= {f"{measure}:{name}": value for measure, value in zip(names, values, strict=True)}
    return row


def _consistency(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    row, scores = {}, {name: np.array(example[f"score:{name}"]) for name in explainers}
    top = {name: set(np.argsort(-values)[: max(1, len(values) // 5)].tolist()) for name, values in scores.items()}
    for place, one in enumerate(explainers):
        for other in explainers[place + 1 :]:
            row[f"overlap:{one}~{other}"] = len(top[one] & top[other]) / len(top[one])
            alike = float(np.mean(np.sign(scores[one]) == np.sign(scores[other])))
            row[f"sign:{one}~{other}"] = alike if {one, other} <= SIGNED else math.nan
    return row


def _roar(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    row = {"accuracy@0:chance": float(draw.random() < 0.9)}
    for name in (*explainers, "chance"):
        for share in SHARES:
            row[f"accuracy@{share:g}:{name}"] = float(draw.random() < 0.9 - share * (0.2 + 0.6 * _quality(name)))
    for name in explainers:
        falls = [row[f"accuracy@{share:g}:chance"] - row[f"accuracy@{share:g}:{name}"] for share in SHARES]
        row[f"fall_gain:{name}"] = float(np.mean(falls))
    return row


def _shortcut(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    used = float(draw.random() < 0.95)
    shown = {f"shown:{n}": float(draw.random() < 0.1 + 0.85 * _quality(n)) if used else math.nan for n in explainers}
    return {"used:model": used} | shown


def _layers(draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...]) -> dict[str, float]:
    subjects = ("all layers", *(f"layer {layer}" for layer in range(6)))
    return {f"{measure}:{subject}": float(draw.beta(2, 9)) for measure in LAYERED for subject in subjects}


LAYERED = ("uniform", "uniform_flips", "permuted", "permuted_flips")
NEW = {
    "deciding": _deciding,
    "layers": _layers,
    "erasure": _erasure,
    "plausibility": _plausibility,
    "sanity": _sanity,
    "stability": _stability,
    "consistency": _consistency,
    "roar": _roar,
    "shortcut": _shortcut,
}
