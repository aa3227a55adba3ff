"""What the numbers of audits about models are called in their tables, audit by audit."""

from __future__ import annotations

RIGHT = "texts on which it is right (share)"
FAR = {
    "jsd": "attention, distance from the audited model (JSD)",
    "tvd": "predictions, distance from the audited model (TVD)",
    "same": "same decision as the audited model (share)",
    "right": RIGHT,
}

LABELS: dict[str, dict[str, str]] = {
    "dispersion": {
        "entropy": "normalised entropy",
        "own": "share of what moves a state that comes from its own word",
        "first": "states that their own word moves most (share)",
    },
    "sparsity": {
        "right": RIGHT,
        "support": "words with any attention",
        "entropy_attention": "entropy of attention (normalised)",
        "entropy_gradient": "entropy of the importance of words, by gradient",
        "entropy_loo": "entropy of the importance of words, by deletion",
        "entropy_states": "entropy of what moves a state",
        "tau_input": "τ of attention with the importance of words",
        "tau_state": "τ of attention with the importance of states",
        "trend_entropy": "τ of λ or α with the entropy of the importance of words",
        "trend_input": "τ of λ or α with the agreement with words",
        "trend_state": "τ of λ or α with the agreement with states",
    },
    "word_level": {
        "right": RIGHT,
        "right_gain": "the same, gain over the base model",
        "information": "information of a state on its word, at least (bits)",
        "information_shuffled": "the same with words shuffled: about 0, or the estimate is wrong",
        "median_tvd": "median output change when attention is shuffled (TVD)",
        "median_tvd_gain": "the same, gain over the base model",
        "jsd": "furthest attention (JSD)",
        "auprc": "AUPRC of attention",
        "auprc_gain": "the same, gain over the base model",
    },
    "frozen_uniform": {
        "right": RIGHT,
        "right_gain": "gain of learnt over uniform attention",
        "tvd": "predictions, distance from learnt attention (TVD)",
        "same": "same decision as with learnt attention (share)",
    },
    "seed_variance": FAR,
    "guide": {"right": RIGHT, "right_gain": "the same, gain over attention learnt by itself"},
    "trained_adversary": FAR,
    "deception": {
        "mass": "attention on the avoided words (share)",
        "mass_gain": "the same, gain over λ = 0",
        "right": RIGHT,
        "right_gain": "the same, gain over λ = 0",
    },
}

COMPARING = tuple(name for name in LABELS if name != "dispersion")
"""Audits whose subjects are models; their tables are over all texts, for there may be many models."""

ALL = "the whole sweep"
"""What a trend is of."""


def label(audit: str, measure: str) -> str | None:
    """A measure's name for a table, or None where the audit has none of its own for it."""
    base, _, threshold = measure.partition("@")
    words = LABELS.get(audit, {}).get(base)
    return words if words is None or not threshold else f"{words} where the output may move by {threshold}"


def subject(audit: str, measure: str, name: str) -> str:
    """What stands in the first column of a table: a trend is not of one model but over all of them."""
    return ALL if audit == "sparsity" and measure.startswith("trend_") else name.replace("~", " ~ ")
