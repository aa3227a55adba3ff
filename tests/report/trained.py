"""Made-up numbers of every audit about models for one example, with known effects."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Draw = np.random.Generator
Row = dict[str, float]

FOUR = ("frozen_uniform", "seed_variance", "guide", "trained_adversary")
MODELS = ("dispersion", "sparsity", "word_level", *FOUR, "deception")
SEEDS = tuple(f"seed {place}" for place in range(1, 9))
ADVERSARIES = {"λ=0": (0.02, 0.01), "λ=0.001": (0.05, 0.015), "λ=0.01": (0.3, 0.03), "λ=0.1": (0.55, 0.08)}
ADVERSARIES |= {"λ=1": (0.65, 0.35)}
"""JSD and TVD on average, by λ."""

STRENGTHS = {"softmax": -1.0, "sparsegen(-10)": -10.0, "sparsegen(-2)": -2.0, "sparsemax": 0.0}
STRENGTHS |= {"sparsegen(0.5)": 0.5, "sparsegen(0.9)": 0.9}
GUIDES = {"learnt": 0.74, "uniform": 0.72, "imported": 0.8, "adversarial": 0.66}
VARIANTS = {"base": (0.8, 3.0, 0.08), "concat": (0.8, 3.6, 0.1), "tying": (0.79, 4.5, 0.16), "mlm": (0.8, 4.0, 0.13)}
VARIANTS |= {"conicity": (0.6, 3.1, 0.12), "diversity": (0.78, 3.0, 0.08)}
"""Accuracy, bits and median TVD, by variant."""

EPSILONS = (0.01, 0.05, 0.1, 0.2)
MASSES = {"λ=0": (0.45, 0.92), "λ=0.01": (0.3, 0.92), "λ=0.1": (0.04, 0.92), "λ=1": (0.002, 0.7)}
ENTROPIES = {"gradient": 0.8, "leave_one_out": 0.7, "states": 0.55, "attention": 0.6}
ENTROPIES |= {"state_gradient": 0.85, "state_leave_one_out": 0.75}


def _near(draw: Draw, mean: float, noise: float = 0.05) -> float:
    return float(np.clip(draw.normal(mean, noise), 0, 1))


def _right(hard: float, rate: float) -> float:
    """Whether a model of this accuracy is right on a text of this hardness: models fail on the same texts."""
    return float(hard < rate)


def _dispersion(draw: Draw, hard: float) -> Row:
    row = {f"entropy:{name}": _near(draw, mean) for name, mean in ENTROPIES.items()}
    row |= {"own:states": _near(draw, 0.35), "first:states": _near(draw, 0.6)}
    for name, tau in (("gradient", 0.3), ("leave_one_out", 0.25), ("state_gradient", 0.7)):
        row |= {f"tau:attention~{name}": float(draw.normal(tau, 0.2)), f"p:attention~{name}": float(draw.random())}
    return row | {"tau:attention~state_leave_one_out": math.nan, "p:attention~state_leave_one_out": math.nan}


def _sparsity(draw: Draw, hard: float) -> Row:
    row: Row = {}
    for name, strength in STRENGTHS.items():
        step = -math.log(1 - strength)  # −2.4 to 2.3
        row |= {
            f"right:{name}": _right(hard, 0.8 - 0.01 * step),
            f"support:{name}": _near(draw, 0.6 - 0.2 * step),
            f"entropy_attention:{name}": _near(draw, 0.5 - 0.15 * step),
            f"entropy_gradient:{name}": _near(draw, 0.75 + 0.04 * step),
            f"entropy_loo:{name}": _near(draw, 0.65 + 0.01 * step),
            f"entropy_states:{name}": _near(draw, 0.55),
            f"tau_input:{name}": float(draw.normal(0.35 - 0.05 * step, 0.1)),
            f"tau_state:{name}": float(draw.normal(0.6, 0.1)),
        }
    trends = (("trend_entropy", 0.6), ("trend_input", -0.5), ("trend_state", 0.0))
    return row | {name: float(np.clip(mean + draw.uniform(-0.3, 0.3), -1, 1)) for name, mean in trends}


def _word_level(draw: Draw, hard: float) -> Row:
    row: Row = {}
    for name, (rate, bits, moved) in VARIANTS.items():
        row |= {
            f"right:{name}": _right(hard, rate),
            f"information:{name}": float(draw.normal(bits, 0.3)),
            f"information_shuffled:{name}": float(draw.normal(0.2, 0.05)),
            f"median_tvd:{name}": _near(draw, moved, 0.02),
        }
        row |= {f"jsd@{e:g}:{name}": min(0.69, 0.15 + 1.6 * e + 0.05 / (moved + 0.1)) for e in EPSILONS}
    for name in VARIANTS:
        if name != "base":
            row |= {f"{m}_gain:{name}": row[f"{m}:{name}"] - row[f"{m}:base"] for m in ("right", "median_tvd")}
    return row


def _far(draw: Draw, hard: float, name: str, means: tuple[float, float]) -> Row:
    return {
        f"jsd:{name}": _near(draw, means[0], 0.04),
        f"tvd:{name}": _near(draw, means[1], 0.01),
        f"same:{name}": float(draw.random() < 1 - means[1]),
        f"right:{name}": _right(hard, 0.83 - means[1] / 2),
    }


def _seeds(draw: Draw, hard: float) -> Row:
    row: Row = {}
    for place, name in enumerate(SEEDS):
        row |= _far(draw, hard, name, (0.15 + 0.02 * place, 0.05 + 0.004 * place))
    return row


def _seed_variance(draw: Draw, hard: float) -> Row:
    row = _seeds(draw, hard)
    means = {m: float(np.mean([row[f"{m}:{name}"] for name in SEEDS])) for m in ("jsd", "tvd", "same", "right")}
    return {f"{measure}:seeds": mean for measure, mean in means.items()} | row


def _trained_adversary(draw: Draw, hard: float) -> Row:
    row: Row = {}
    for name, means in ADVERSARIES.items():
        row |= _far(draw, hard, name, means)
    return row | _seeds(draw, hard)


def _frozen_uniform(draw: Draw, hard: float) -> Row:
    learnt, uniform = _right(hard, 0.83), _right(hard, 0.7)
    row = {"right:learnt": learnt, "right:uniform": uniform, "right_gain:learnt": learnt - uniform}
    return row | {"tvd:uniform": _near(draw, 0.1), "same:uniform": float(draw.random() < 0.9)}


def _guide(draw: Draw, hard: float) -> Row:
    found = {name: _right(hard, rate) for name, rate in GUIDES.items()}
    row = {f"right:{name}": value for name, value in found.items()}
    return row | {f"right_gain:{name}": v - found["learnt"] for name, v in found.items() if name != "learnt"}


def _deception(draw: Draw, hard: float) -> Row:
    row: Row = {"right:without": _right(hard, 0.6)}
    held = draw.random() < 0.8  # the others hold none of the words
    for name, (mass, rate) in MASSES.items():
        row |= {f"mass:{name}": _near(draw, mass, mass / 9) if held else math.nan, f"right:{name}": _right(hard, rate)}
    return row | {f"mass_gain:{name}": row[f"mass:{name}"] - row["mass:λ=0"] for name in MASSES if name != "λ=0"}


MAKE: dict[str, Callable[[Draw, float], Row]] = {
    "dispersion": _dispersion,
    "sparsity": _sparsity,
    "word_level": _word_level,
    "frozen_uniform": _frozen_uniform,
    "seed_variance": _seed_variance,
    "guide": _guide,
    "trained_adversary": _trained_adversary,
    "deception": _deception,
}


def numbers(audit: str, example: dict[str, Any]) -> Row:
    """The numbers of one audit; how hard a text is depends on its place alone, so that accuracies come out as meant."""
    hard = (example["example"] * 0.61803398875) % 1
    return MAKE[audit](np.random.default_rng([example["example"], len(audit)]), hard)


QUESTIONS = {
    "dispersion": ("How concentrated is what moves a state?", "Meister et al. (2021), section 4"),
    "sparsity": ("Does sparse attention agree better?", "Meister et al. (2021), section 5"),
    "word_level": ("What do states close to their words change?", "Tutek and Šnajder (2020)"),
    "frozen_uniform": ("Is the model any better for having learnt where to look?", "Wiegreffe and Pinter (2019)"),
    "seed_variance": ("How far apart are models of other seeds?", "Wiegreffe and Pinter (2019)"),
    "guide": ("Is the attention worth anything to another model?", "Wiegreffe and Pinter (2019)"),
    "trained_adversary": ("Can another model answer the same by looking elsewhere?", "Wiegreffe and Pinter (2019)"),
    "deception": ("How little attention can telling words get?", "Pruthi et al. (2020)"),
}
