"""The tables of README.md; of the texts of the corpus it shows the first words of some sentences only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.data.examples import Corpus, Example
from studies.pages import made_from
from studies.results import Result

WORDS = 12  # of a sentence that is shown
SHOWN = 1  # training sentences for a decision, and against it


def page(results: Mapping[str, Result], corpus: Corpus) -> str:
    """Wrong labels, texts with what made the model decide so, and the shortcut, for each model."""
    parts = [made_from("studies.influence", [result["model"] for result in results.values()]), ""]
    for name, result in results.items():
        parts += [f"### {name}", "", _model(result), "", *_signals(result), "", *_fast(result), ""]
    for name, result in results.items():
        parts += [f"### Ten test sentences, {name}", "", *_shown(result, corpus), ""]
    return "\n".join(parts)


def _model(result: Result) -> str:
    facts = result["model"]
    learnt = facts["learnt"]
    return (
        f"{facts['parameters']:,} parameters, {facts['train']:,} training sentences, {facts['flipped']} of them with a "
        f"flipped label; accuracy {facts['accuracy']:.3f} on test sentences. It gives the label that it was taught to "
        f"{learnt['right labels']:.1%} of the right ones and {learnt['wrong labels']:.1%} of the flipped ones."
    )


def _signals(result: Result) -> list[str]:
    lines = ["| signal | AUC | precision at the number of flips | seconds |", "|---|---|---|---|"]
    ranked = sorted(result["signals"].items(), key=lambda pair: -pair[1].get("auc", -1))
    plain = result["signals"].get("loss", {}).get("auc", 1.0)
    for name, found in ranked:
        if "failed" in found:
            lines.append(f"| {name} | – | {found['failed'].partition('. ')[0]} | – |")
            continue
        area, precision = _interval(found, "auc"), _interval(found, "precision")
        better = "**" if name != "loss" and found["auc_low"] > plain else ""
        lines.append(f"| {name} | {better}{area}{better} | {precision} | {found['seconds']:.1f} |")
    return [*lines, "", "Bold: the interval lies above the AUC of the plain loss."]


def _interval(found: Result, name: str) -> str:
    return f"{found[name]:.3f} [{found[f'{name}_low']:.3f}, {found[f'{name}_high']:.3f}]"


def _fast(result: Result) -> list[str]:
    found = result["fastif"]
    if "failed" in found:
        return [f"FastIF: {found['failed']}"]
    head = [
        "| FastIF: candidates | recall of its own top 10 | of the method shown below | speed-up | of the products |"
    ]
    lines = [*head, "|---|---|---|---|---|"]
    for share, each in found["candidates"].items():
        other = each["recall_of_other"]
        cells = [f"{float(share):.1%}", f"{each['recall']:.2f}", "–" if other is None else f"{other:.2f}"]
        cells += [f"{each['speed_up']:.1f} ×", f"{each['speed_up_of_products']:.1f} ×"]
        lines.append("| " + " | ".join(cells) + " |")
    seconds = f"{found['solve_seconds']:.1f} s to solve, {found['product_seconds']:.1f} s for all products"
    return [*lines, "", f"For one sentence: {seconds}."]


def _shown(result: Result, corpus: Corpus) -> list[str]:
    name, found = next(((name, each) for name, each in result["shown"].items() if "texts" in each), ("", {}))
    if not found:
        return ["None of the methods answered."]
    classes = result["model"]["classes"]
    lines = [f"By {name}; a score is the predicted change of the margin of the decision without the sentence.", ""]
    for text in found["texts"]:
        decided = f"{classes[text['predicted']]} {text['probability']:.2f}, labelled {classes[text['label']]}"
        lines.append(f"* “{cut(corpus.test[text['row']])}” → {decided}")
        for kind, mark in (("supporting", "for it"), ("opposing", "against it")):
            each = "; ".join(_example(example, corpus.train, classes) for example in text[kind][:SHOWN])
            lines.append(f"  * {mark}: {each}")
    return lines


def _example(found: Result, train: Sequence[Example], classes: Sequence[str]) -> str:
    wrong = ", flipped" if found["flipped"] else ""
    return f"“{cut(train[found['row']])}” ({classes[found['label']]}{wrong}, {found['score']:+.2g})"


def cut(example: Example) -> str:
    """The first words of a text."""
    words = example.text.split()
    return " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")
