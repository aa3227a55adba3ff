"""The tables of the page."""

from __future__ import annotations

from collections.abc import Mapping

from studies.explanations.cells import ROWS
from studies.pages import made_from
from studies.results import Result

HEAD = (
    "who explains",
    "accuracy",
    "BLEU",
    "chrF",
    "BLEU, two references",
    "by own explanations",
    "by others'",
    "LAS",
    "leaked",
    "label changes: words mentioned erased",
    "as many others",
)
TITLES = {"esnli": "e-SNLI", "cose": "CoS-E 1.0"}


def page(results: Mapping[str, Result]) -> str:
    """One table a corpus, and a few explanations as they were written."""
    scales = ", ".join(sorted({found["about"]["scale"] for found in results.values()}))
    parts = [f"{made_from('studies.explanations', [found['about'] for found in results.values()])} Scale: {scales}."]
    for name, found in results.items():
        parts += [f"### {TITLES[name]}", about(found["about"]), table(found), examples(found)]
    return "\n\n".join(parts) + "\n"


def about(facts: Result) -> str:
    """The size of the corpus, and what labels alone reach."""
    sizes = {name: f"{count:,}" for name, count in facts["sizes"].items()}
    alone = facts["labels alone"]
    learnt = "" if alone is None else f" A writer of labels alone, which all start from, reaches {spread(alone)}."
    return (
        f"{sizes['train']} examples to train on, {sizes['dev']} to choose by, {sizes['test']} to test, "
        f"{sizes['unexplained']} more with labels only; {facts['words']:,} words. The most frequent label is right for "
        f"{facts['most frequent']:.3f} of the test examples.{learnt}"
    )


def table(found: Result) -> str:
    """One line for each mode, and one for people."""
    lines = [HEAD, ["---"] * len(HEAD)]
    for name in ROWS:
        row = found[name]
        las, swapped, gone = row["las"], row["exchanged"], row.get("erased")
        close, two = row.get("overlap"), row["overlap, two references"]
        share = las["count"][0] / sum(las["count"])
        empty = f" ({las['empty'][0]} empty)" if las["empty"] else ""
        lines.append(
            (
                name.replace("_", " "),
                spread(row["accuracy"]) if "accuracy" in row else "–",
                *((f"{close[each]:.1f}" for each in ("bleu", "chrf")) if close else "––"),
                f"{two['bleu']:.1f}" if two else "–",
                f"{swapped['own']:.3f}",
                f"{swapped['others']:.3f}",
                f"{100 * las['las']:.1f} [{100 * las['low']:.1f}, {100 * las['high']:.1f}]{empty}",
                f"{share:.2f}",
                *((f"{gone[each]:.3f}" for each in ("mentioned", "others")) if gone else "––"),
            )
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def examples(found: Result) -> str:
    """The first test examples, with what the modes say."""
    lines = []
    for place, first in enumerate(found[ROWS[0]]["shown"][:3]):
        lines.append(f"* the test example number {place + 1} – {first['label']}")
        for name in ROWS[:-1]:
            told = found[name]["shown"][place]
            lines.append(f"  * {name.replace('_', ' ')}: {told['answer']}, {told['explanation']}")
    return "\n".join(lines)


def spread(found: list[float]) -> str:
    """A mean and its interval."""
    mean, low, high = found
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"
