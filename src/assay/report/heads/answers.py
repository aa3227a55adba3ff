"""What each section found, as a sentence and as rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.report.heads.probe import Probe, real
from assay.report.heads.verdict import step
from assay.stories import Grid
from assay.writing import count, interval, percent

Section = dict[str, Any]


def answer(name: str, section: Section) -> str:
    """What was found, in a sentence or two."""
    return ANSWERS[name](section)


def table(name: str, section: Section) -> Grid | None:
    """The numbers beside what they are held against."""
    return TABLES[name](section) if name in TABLES else None


def _coreference(section: Section) -> str:
    return (
        f"Head {section['head']} of layer {section['layer']}, chosen on dev texts, finds the right one of two names "
        f"for {percent(real(section['accuracy']))} of {count(section['n'])} pronouns "
        f"({_held(section, section['nearest_accuracy'], 'taking the nearer name')}."
    )


def _negation(section: Section) -> str:
    where = f"{count(section['n'])} negated words (in {count(section['sentences'])} sentences)"
    rule = f"taking {step(section['offset'])}"
    return (
        f"By head {section['head']} of layer {section['layer']}, chosen on dev sentences, "
        f"{percent(real(section['accuracy']))} of {where} attend most to the word that negates them "
        f"({_held(section, section['offset_accuracy'], rule)}."
    )


def _held(section: Section, baseline: float | None, how: str) -> str:
    """The interval, whether it lies above the baseline and the control, and both of them; closes a bracket."""
    low, other, control = real(section["low"]), real(baseline), real(section["control_accuracy"])
    shown = f"95 % interval {interval(100 * low, 100 * real(section['high']), 1)} %)"
    sure = "more often than" if low > other else "not surely more often than"
    return f"{shown}, {sure} {how}: {percent(other)}. The control reaches {percent(control)}"


def _pairs(section: Section) -> str:
    parts = []
    if binary := section.get("binary"):
        parts.append(f"Whether two words are joined is told rightly for {_probed(binary)}.")
    if named := section.get("relations"):
        parts.append(f"By which of {len(named.get('classes') or ())} relations, for {_probed(named)}.")
    return " ".join(parts)


def _probed(part: Section) -> str:
    return (
        f"{percent(real(part['accuracy']))} of {count(part['n'])} pairs, where the commonest answer alone gives "
        f"{percent(real(part['majority']))} and the control {percent(real(part['control']))}"
    )


def _speech(section: Section) -> str:
    rows = _tops(section)
    if not rows:
        return f"No head has a profile over {count(section['n'])} words."
    tag, layer, head, share, even, control = max(rows, key=lambda row: row[3] - max(row[4], row[5]))
    return (
        f"Over {count(section['n'])} words, the sharpest profile is that of head {head} of layer {layer}: "
        f"{percent(share)} of its attention goes to {tag}, where even attention would give {percent(even)} "
        f"and exchanged tags give {percent(control)}."
    )


def _importance(section: Section) -> str:
    curve = section["curve"]
    limit = real(section["accuracy"]) - 0.01
    fallen = next((place for place, point in enumerate(curve) if point["accuracy"] < limit), len(curve))
    most = curve[max(fallen - 1, 0)]
    middle = min(curve, key=lambda point: abs(point["share"] - 0.5))
    return (
        f"With all heads the accuracy on {count(section['n'])} test texts is {percent(real(section['accuracy']))}. "
        f"{_free(most)} With {percent(middle['share'], 0)} pruned it is {percent(middle['accuracy'])}, in random order "
        f"{percent(middle['random'])}, the most important first {percent(middle['reverse'])}."
    )


def _free(most: Section) -> str:
    """Up to where pruning costs next to nothing."""
    if not most["pruned"]:
        return "Pruning the least important heads costs more than one point from the first step on."
    return f"Pruning the least important {percent(most['share'], 0)} of the heads costs at most one point."


def _single(section: Section, baseline: str, title: str) -> Grid:
    columns = ("head", "accuracy", "95 % interval", title, "control", "n")
    name = f"layer {section['layer']}, head {section['head']}"
    row = (
        name,
        percent(real(section["accuracy"])),
        _range(section),
        percent(real(section[baseline])),
        percent(real(section["control_accuracy"])),
        count(section["n"]),
    )
    return Grid(columns, (row,), 1)


def _pair_table(section: Section) -> Grid:
    columns = ("question", "accuracy", "95 % interval", "commonest answer", "control", "n")
    titles = {"binary": "joined or not", "relations": "which relation"}
    rows = [
        (
            titles[key],
            percent(real(part["accuracy"])),
            _range(part),
            percent(real(part["majority"])),
            percent(real(part["control"])),
            count(part["n"]),
        )
        for key in titles
        if (part := section.get(key))
    ]
    return Grid(columns, tuple(rows), 1)


def _speech_table(section: Section) -> Grid:
    columns = ("part of speech", "even attention", "head with the most", "its share", "with exchanged tags")
    rows = [
        (tag, percent(even), f"layer {layer}, head {head}", percent(share), percent(control))
        for tag, layer, head, share, even, control in _tops(section)
    ]
    return Grid(columns, tuple(rows), 1)


def _tops(section: Section) -> list[tuple[str, int, int, float, float, float]]:
    """For each tag: the layer and the head that give it the largest share, that share, the even one, the control."""
    rows = []
    for place, tag in enumerate(section["tags"]):
        shares = {
            (layer, head): real(tags[place])
            for layer, heads in enumerate(section["share"])
            for head, tags in enumerate(heads)
        }
        known = {where: share for where, share in shares.items() if share == share}
        if known:
            layer, head = max(known, key=lambda where: known[where])
            control = real(section["control"][layer][head][place])
            rows.append((tag, layer, head, known[layer, head], real(section["uniform"][place]), control))
    return rows


def _curve_table(section: Section) -> Grid:
    columns = ("pruned", "heads", "least important first", "95 % interval", "random order", "most important first")
    rows = [
        (
            percent(point["share"], 0),
            count(point["pruned"]),
            percent(point["accuracy"]),
            _range(point),
            percent(point["random"]),
            percent(point["reverse"]),
        )
        for point in section["curve"]
    ]
    return Grid(columns, tuple(rows), 1)


def _range(part: Section) -> str:
    return f"{interval(100 * real(part['low']), 100 * real(part['high']), 1)} %"


ANSWERS: dict[str, Callable[[Section], str]] = {
    "speech": _speech,
    "coreference": _coreference,
    "negation": _negation,
    "pairs": _pairs,
    "importance": _importance,
}
TABLES: dict[str, Callable[[Section], Grid]] = {
    "speech": _speech_table,
    "coreference": lambda section: _single(section, "nearest_accuracy", "nearer name"),
    "negation": lambda section: _single(section, "offset_accuracy", f"offset {section['offset']:+d}".replace("-", "−")),
    "pairs": _pair_table,
    "importance": _curve_table,
}


def origins(probe: Probe) -> list[tuple[str, str]]:
    """What is needed to make the same probe again, as pairs of a name and a text."""
    model = probe.get("model", {})
    pairs = {
        "Model": " – ".join(filter(None, (str(model.get("name") or ""), str(model.get("description") or "")))),
        "Parameters": count(int(model["parameters"])) if model.get("parameters") else "",
        "Weights": f"sha256 {model['sha256']}" if model.get("sha256") else "",
        "Made": probe.get("created") or "",
        "Took": f"{probe['seconds']:.1f} s" if probe.get("seconds") is not None else "",
        "Device": probe.get("device") or "",
        "Versions": ", ".join(f"{name} {version}" for name, version in (probe.get("versions") or {}).items()),
    }
    return [(name, str(text)) for name, text in pairs.items() if text]
