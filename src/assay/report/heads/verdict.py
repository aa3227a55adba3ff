"""What the probes say in plain words, for the top of the page and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from assay.report.heads.probe import Probe, Relation, best_directions, real, relations, single
from assay.writing import count, listed, percent

NAMES = {
    "relations": "dependency relations",
    "speech": "parts of speech",
    "coreference": "coreference",
    "negation": "negation",
    "pairs": "pairs of words",
    "importance": "head importance",
}
"""What each section is about."""


def headline(probe: Probe) -> str:
    """One sentence, with a colon between what was found and why."""
    found = single(relations(probe))
    if not found:
        shown = listed([NAMES.get(name, name) for name in probe["sections"]])
        return f"What the heads of {model(probe)} attend to: {shown}, each beside its control."
    names = {each.relation for each in found}
    over = {each.relation for each in found if each.beats_offset}
    both = {each.relation for each in found if each.beats_both}
    if not both:
        lead = "No head finds a relation better than a fixed offset and chance do"
    elif len(both) == len(names):
        lead = "Every relation has a head that finds it better than position and chance do"
    else:
        lead = f"{'Most' if len(both) > len(names) / 2 else 'Some'} relations have a head that finds them better than "
        lead += "position and chance do"
    return f"{lead}: {_told(len(over), len(both), len(names))}"


def _told(over: int, both: int, all_of_them: int) -> str:
    """How many relations there are, and how many have a head that beats what it is held against."""
    noun = "relation" if all_of_them == 1 else "relations"
    sentence = (
        f"for {count(over)} of {count(all_of_them)} {noun}, the head that was best on dev sentences finds the right "
        "word in test sentences more often than the best fixed offset, beyond its 95 % interval"
    )
    if over and both == over:
        return f"{sentence}; {'it beats' if over == 1 else 'all of them beat'} the random control as well."
    return f"{sentence}; {count(both)} of them also {'beats' if both == 1 else 'beat'} the random control."


def leading(found: Sequence[Relation]) -> str | None:
    """The relation whose head leads most surely, as a sentence, or None where none leads."""
    best = next((each for each in best_directions(single(found)) if each.beats_both), None)
    if best is None:
        return None
    return (
        f"The surest lead: {best.name}, by head {best.head} of layer {best.layer}, is right for "
        f"{percent(best.accuracy)} of {count(best.n)} words; always taking {step(best.offset)} is right for "
        f"{percent(best.offset_accuracy)}, and the control for {percent(best.control_accuracy)}."
    )


def step(offset: int) -> str:
    """A fixed offset in words."""
    if offset == 0:
        return "the word itself"
    distance = "next" if abs(offset) == 1 else f"{_ordinal(abs(offset))}"
    side = "to the right" if offset > 0 else "to the left"
    return f"the {distance} word {side}"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def model(probe: Probe) -> str:
    return str(probe.get("model", {}).get("name") or "this model")


def caveats(probe: Probe) -> list[str]:
    """What must be known before anything is concluded."""
    said = []
    found = relations(probe)
    few = [each for each in best_directions(single(found)) if each.beats_offset and each.n < 50]
    if few:
        said.append(
            f"{listed([f'{each.relation} (n = {each.n})' for each in few[:5]])} "
            f"{'rests' if len(few) == 1 else 'rest'} on fewer than 50 test words."
        )
    if len(found) > 20:
        said.append(
            f"With {len(found)} comparisons at 95 %, about {round(0.025 * len(found)) or 1} would seem to lead by luck "
            "alone even if none did."
        )
    importance = probe["sections"].get("importance")
    if importance and real(importance["accuracy"]) <= real(importance.get("majority", 0)) + 0.05:
        said.append(
            "The classifier is hardly better than always naming the commonest class: its heads have little to lose."
        )
    return said
