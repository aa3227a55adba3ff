"""The table of relations and their best heads, for a terminal."""

from __future__ import annotations

from rich.table import Table

from assay.report.heads.probe import Probe, best_directions, relations
from assay.report.heads.verdict import NAMES
from assay.writing import count, interval, listed, number


def relation_table(probe: Probe) -> Table | None:
    """Of each relation the direction in which its head leads most; None where relations were not probed."""
    found = best_directions(relations(probe))
    if not found:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("relation", "to", "head"):
        table.add_column(name, no_wrap=True)
    for name in ("right %", "95 %", "offset", "control", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for each in found:
        table.add_row(
            each.title,
            each.direction.removeprefix("to "),
            f"{each.layer}-{each.head}",
            number(100 * each.accuracy, 1),
            interval(100 * each.low, 100 * each.high, 0),
            f"{number(100 * each.offset_accuracy, 1)} ({each.offset:+d})".replace("-", "−"),
            number(100 * each.control_accuracy, 1),
            count(each.n),
            "✓" if each.beats_both else "",
            style="" if each.beats_both else "dim",
        )
    return table


def left_out(probe: Probe) -> list[str]:
    """A sentence for each reason why something was not probed."""
    reasons: dict[str, list[str]] = {}
    for name, reason in (probe.get("left_out") or {}).items():
        reasons.setdefault(str(reason), []).append(NAMES.get(name, name))
    return [f"Not probed: {listed(names)}. {reason}" for reason, names in reasons.items()]
