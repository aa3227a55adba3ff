"""The tables of README.md."""

from __future__ import annotations

from collections.abc import Mapping

from studies.pages import made_from, table
from studies.results import Result, finding

YARDSTICKS = {
    "leave_one_out": ("τ with leave-one-out", "agreement", "tau"),
    "attnlrp": ("highest words that AttnLRP names too", "consistency", "overlap"),
}
"""What other explainers are compared with, and how: the first of these that is there."""

MEASURES = {
    "comprehensiveness": ("erasure", "comprehensiveness"),
    "sufficiency": ("erasure", "sufficiency"),
    "words until the decision flips": ("erasure", "flip"),
}


def page(results: Mapping[str, Result]) -> str:
    """Accuracy of all models, the explainers on each, and what happens when attention is changed."""
    made = made_from("studies.transformers", list(results.values()))
    if all(result["training"]["dtype"] == "bfloat16" for result in results.values()):
        made = made.replace("--device cuda", "--device cuda --dtype bfloat16")
    parts = [made, "", *_models(results), ""]
    for name, result in results.items():
        cell, _, head = name.rpartition("-")
        title = "its own head" if head == "own" else "an attention that pools"
        parts += [f"### {cell.replace('-whole', ' in full')}, {title}", "", *_explainers(result), ""]
        parts += [sentence for said in (_attention(result), _speed(result)) if said for sentence in (said, "")]
    return "\n".join(parts)


def _models(results: Mapping[str, Result]) -> list[str]:
    head = "| model | texts learnt from | accuracy | test texts | audited | training | audit |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for name, result in results.items():
        facts = result["training"]
        lines.append(
            f"| {name} | {facts['train']:,} | {facts['accuracy']:.3f} | {facts['test']:,} | "
            f"{result['corpus']['audited']:,} | {facts['training_seconds']} s, {facts['epochs']} epochs | "
            f"{facts['audit_seconds']} s |"
        )
    return lines


def _explainers(result: Result) -> list[str]:
    names = list(result["training"]["explainer_seconds"])
    yardstick = next(name for name in YARDSTICKS if name in names)
    rows = [
        [_beside(result, name, yardstick), *(_mean(result, *wanted, name) for wanted in MEASURES.values())]
        for name in names
    ]
    return table(["explainer", YARDSTICKS[yardstick][0], *MEASURES], names, rows, low=(2, 3))


def _beside(result: Result, name: str, yardstick: str) -> float | None:
    """How alike an explainer and the yardstick are, whichever of them comes first in the pair."""
    if (name, yardstick) == ("occlusion", "leave_one_out"):
        return None  # of two classes it is leave-one-out with a sign
    _, audit, measure = YARDSTICKS[yardstick]
    pairs = (f"{name}~{yardstick}", f"{yardstick}~{name}")
    return next((mean for pair in pairs if (mean := _mean(result, audit, measure, pair)) is not None), None)


def _mean(result: Result, audit: str, measure: str, subject: str) -> float | None:
    found = finding(result, audit, subject, measure)
    return None if found is None else found.mean


def _attention(result: Result) -> str | None:
    """One sentence on what the answer owes to attention, where that was asked."""
    said = []
    for audit, subject, measure, words in (
        ("permutation", "attention", "median_tvd", "shuffling all attention moves the answer by {}"),
        ("layers", "all layers", "uniform", "even attention in all layers by {}"),
        ("adversary", "attention", "jsd", "other attention that leaves it within .01 is found at a JSD of {}"),
    ):
        found = finding(result, audit, subject, measure)
        if found is not None:
            said.append(words.format(f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"))
    sentence = "; ".join(said)
    return f"{sentence[0].upper()}{sentence[1:]}." if said else None


def _speed(result: Result) -> str | None:
    """One sentence on where the time of an audit went, where it was noted."""
    facts = result["training"]
    if "each_audit_seconds" not in facts:
        return None
    texts, seconds = result["corpus"]["audited"], facts["audit_seconds"]
    parts = sorted((facts["explainer_seconds"] | facts["each_audit_seconds"]).items(), key=lambda part: -part[1])
    longest = ", ".join(f"{name} {each:.0f} s" for name, each in parts if each >= 1)
    return f"{texts:,} texts in {seconds} s, {texts / seconds:.0f} a second: {longest}."
