"""The tables of README.md."""

from __future__ import annotations

from collections.abc import Mapping

from studies.pages import made_from, table
from studies.results import Result, finding

MEASURES = {
    "τ with leave-one-out": ("agreement", "tau"),
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
        corpus, _, head = name.partition("-")
        title = "its own head" if head == "own" else "an attention that pools"
        parts += [f"### {corpus}, {title}", "", *_explainers(result), "", _attention(result), ""]
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
    rows = [[_mean(result, audit, measure, name) for audit, measure in MEASURES.values()] for name in names]
    return table(["explainer", *MEASURES], names, rows, low=(2, 3))


def _mean(result: Result, audit: str, measure: str, name: str) -> float | None:
    if audit == "agreement" and name == "occlusion":
        return None  # of two classes it is leave-one-out with a sign
    subjects = [name] if audit != "agreement" else [f"{name}~leave_one_out", f"leave_one_out~{name}"]
    found = [finding(result, audit, subject, measure) for subject in subjects]
    return next((each.mean for each in found if each is not None), None)


def _attention(result: Result) -> str:
    """One sentence on what the answer owes to attention."""
    said = []
    for audit, subject, measure, words in (
        ("permutation", "attention", "median_tvd", "shuffling all attention moves the answer by {}"),
        ("layers", "all layers", "uniform", "even attention in all layers by {}"),
        ("adversary", "attention", "jsd", "other attention that leaves it within .01 is found at a JSD of {}"),
    ):
        found = finding(result, audit, subject, measure)
        if found is not None:
            said.append(words.format(f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"))
    sentence = "; ".join(said) + "."
    return sentence[0].upper() + sentence[1:]
