"""The probes of attention heads as a document: what each head attends to, against position and against chance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from assay.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Document,
    Figure,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Prose,
    Row,
    Section,
    Span,
    Table,
    Words,
    columns,
    page_of,
    provenance,
    some,
)
from assay.probes import drawings
from assay.probes import stored as probes
from assay.probes.drawings import FAINT, Shade
from assay.probes.sentences import (
    ANSWERS,
    LIMITS,
    NAMES,
    PAPERS,
    READINGS,
    TABLES,
    TITLES,
    caveats,
    headline,
    leading,
    model,
    origins,
    step,
)
from assay.probes.stored import Answers, Cells, Probe, Relation, best_directions, real, relations
from assay.writing import count, interval, listed, number, percent

Part = dict[str, Any]

FIRST = 12
"""So many relations are shown before the rest, which is folded away."""
ROOM = 24_000
"""Of more cells than this the numbers stand in probe.json alone: a page must stay small enough to be sent."""


def document(probe: Probe) -> Document:
    """The whole page: relations with their best heads, squares of all heads, drawn heads, other sections, limits."""
    title = f"Heads of {model(probe)}"
    return page_of(probe, title, f"heads of {model(probe)}", _sections(probe), skip="Skip to the verdict")


def brief(probe: Probe) -> tuple[Block, ...]:
    """What a terminal shows: the headline, each relation in the direction in which its head leads most, the rest."""
    found = best_directions(relations(probe))
    reasons: dict[str, list[str]] = {}
    for name, reason in (probe.get("left_out") or {}).items():
        reasons.setdefault(str(reason), []).append(NAMES.get(name, name))
    notes = [Prose(f"Not probed: {listed(names)}. {reason}", "soft") for reason, names in reasons.items()]
    heads = ("relation", "to", "head", "right %", "95 %", "offset", "control", "n", "")
    rows = tuple(Row(_short(each), "" if each.beats_both else "beaten") for each in found)
    return some(Headline(headline(probe)), Table(columns(*heads, numbers=3), rows) if rows else None, notes)


def _short(found: Relation) -> tuple[str, ...]:
    return (
        found.title,
        found.direction.removeprefix("to "),
        f"{found.layer}-{found.head}",
        number(100 * found.accuracy, 1),
        interval(100 * found.low, 100 * found.high, 0),
        f"{number(100 * found.offset_accuracy, 1)} ({found.offset:+d})".replace("-", "−"),
        number(100 * found.control_accuracy, 1),
        count(found.n),
        "✓" if found.beats_both else "",
    )


def _sections(probe: Probe) -> Iterator[Section]:
    found = relations(probe)
    yield Section("verdict", "", _verdict(probe, found), "Verdict")
    if found:
        yield Section("squares", "Every layer and head, relation by relation", _squares(found), "Layers and heads")
    if drawn := [_drawn(example, place == 0) for place, example in enumerate(probe.get("examples") or ())]:
        yield Section("drawn", "Heads drawn", (Prose(READINGS["drawn"], "reading"), *drawn), "Heads drawn")
    for name, title in TITLES.items():
        if section := probe["sections"].get(name):
            yield Section(name, title, tuple(_part(name, section)), NAMES[name].capitalize())
    left = tuple((NAMES.get(name, name), str(reason)) for name, reason in (probe.get("left_out") or {}).items())
    limits = some(
        tuple(map(Prose, LIMITS)),
        (Heading("Not probed"), Pairs(left, "left-out")) if left else None,
        Heading("Papers"),
        Bullets(PAPERS, "papers", True),
    )
    yield Section("limits", "Limits, and where this comes from", limits, "Limits")
    yield provenance(probe, "probe.json", origins(probe))


def _verdict(probe: Probe, found: Sequence[Relation]) -> tuple[Block, ...]:
    lead, colon, because = headline(probe).partition(": ")
    surest = leading(found)
    top = some(
        Headline(
            f"{lead}{colon.strip()}", because, f"{probe['layers']} layers of {probe['heads']} heads: {model(probe)}"
        ),
        Prose(surest, "tally") if surest else None,
        [Prose(each, "caveat") for each in caveats(probe)],
    )
    if not found:
        return top
    rest = f"{len(found) - FIRST} more rows, by how surely they lead over the fixed offset"
    return some(
        top,
        Heading("Relations and their best heads", 2, "relations"),
        _key(),
        _relations(found[:FIRST]),
        Fold(rest, (_relations(found[FIRST:]),)) if len(found) > FIRST else None,
        Prose(READINGS["relations"], "reading"),
    )


def _key() -> Group:
    best = '<line class="interval" x1="6" x2="34" y1="10" y2="10"/><circle class="found" cx="20" cy="10" r="4.5"/>'
    offset = '<line class="offset" x1="6" x2="6" y1="2" y2="18"/>'
    control = '<path class="control" d="M3.5 6.5l7 7m0 -7l-7 7"/>'
    signs = (
        Figure(drawings.sample(best), "best head, 95 % interval"),
        Figure(drawings.sample(offset, 12), "best fixed offset"),
        Figure(drawings.sample(control, 14), "random control"),
    )
    return Group((*signs, Prose((Span("✓", "mark"), " beats both beyond its interval"))), "key")


def _relations(found: Sequence[Relation]) -> Table:
    heads = (
        Column("relation and direction"),
        Column("layer-head", number=True),
        Column("0 to 100 %", role="drawn", wide=True),
        *columns("accuracy", "95 % interval", "offset", "control", "n", numbers=0),
        Column("beats both", role="mark"),
    )
    return Table(heads, tuple(map(_relation, found)), layout="stack", role="relations")


def _relation(found: Relation) -> Row:
    offset = f"offset {found.offset:+d}".replace("-", "−")
    mark = Cell(Span("✓", "mark"), title="beats the fixed offset and the control") if found.beats_both else "–"
    cells = (
        (f"{found.title} ", Span(found.direction, "soft")),
        f"{found.layer}-{found.head}",
        Cell(drawing=drawings.bar(found)),
        percent(found.accuracy),
        interval(100 * found.low, 100 * found.high, 1),
        Cell(percent(found.offset_accuracy), title=step(found.offset), label=offset),
        percent(found.control_accuracy),
        count(found.n),
        mark,
    )
    return Row(cells, "" if found.beats_both else "beaten")


def _squares(found: Sequence[Relation]) -> tuple[Block, ...]:
    made = []
    for each in found:
        label = f"Test accuracy of every head for {each.name}; chosen: layer {each.layer}, head {each.head}"
        drawing = drawings.square(each.every, label, ringed=(each.layer, each.head))
        made.append(_square(each.name, drawing, f"layer {each.layer}, head {each.head}: {percent(each.accuracy)}"))
    numbers: Block = Prose(
        ("There are too many numbers for a page; they stand in ", Span("probe.json", "code"), "."), "soft"
    )
    if sum(len(row) for each in found for row in each.every) <= ROOM:
        tables = tuple(Fold(each.name, (_numbers(each.name, each.every),)) for each in found)
        numbers = Fold("The same as numbers: choose a relation", tables)
    rest = Fold(f"{len(made) - FIRST} more squares", (Group(tuple(made[FIRST:]), "cells"),))
    return some(
        Prose(READINGS["squares"], "reading"),
        Group((Figure(drawings.shades("p"), "100 %", "0 %"),), "key"),
        Group(tuple(made[:FIRST]), "cells"),
        rest if len(made) > FIRST else None,
        numbers,
    )


def _square(title: str, drawing: str, caption: str) -> Figure:
    return Figure(drawing, (Span(title, "above"), f" {caption}"))


def _numbers(title: str, values: Cells, shade: Shade = Shade()) -> Table:  # noqa: B008
    """Layers and heads as a table of shaded numbers."""
    rows = tuple(Row((f"layer {layer}", *(_number(value, shade) for value in row))) for layer, row in enumerate(values))
    heads = columns("", *map(str, range(len(values[0]))), numbers=99)
    caption = Span(title), ", layers by heads, in hundredths."
    return Table(heads, rows, title, "dense", caption=caption)


def _number(value: float | None, shade: Shade) -> Cell:
    found = real(value)
    return Cell("–" if math.isnan(found) else number(100 * found, 0), level=shade.level(found))


def _drawn(example: Part, first: bool) -> Fold:
    """A sentence under some heads."""
    text = " ".join(example["words"])
    heads = tuple(_head(example, head) for head in example["heads"])
    summary = Span(text, "opening"), " ", Span(f"{len(heads)} heads", "outcome")
    return Fold(summary, (Group(heads, "heads body"),), first, "example")


def _head(example: Part, head: Part) -> Figure:
    title = f"{head['title']} (layer {head['layer']}, head {head['head']})"
    words, weights = example["words"], head["weights"]
    asked = probes.answers(example, str(head["title"]))
    label = f"Attention of {title} between the words of: {' '.join(words)}"
    strong = any(probes.known_weight(weight) >= FAINT for row in weights for weight in row)
    heads = columns("word", "attends most to", "weight", "governor", "relation", numbers=9)
    rows = tuple(Row(_line(example, weights, asked, place)) for place in range(len(words)))
    blocks = some(
        None if strong else Prose("No weight between two words is large enough to be drawn.", "soft"),
        Fold("As a table", (Table(heads, rows, title),)),
    )
    return Figure(drawings.lines(words, weights, asked, label), title=title, blocks=blocks)


def _line(example: Part, weights: Cells, asked: Answers, place: int) -> tuple[Words, ...]:
    """A word of a drawn sentence: what it attends to most, how much, whether that is right, and its governor."""
    words, governor = example["words"], example["governors"][place]
    most = probes.strongest(weights, place)
    mark = ("✓" if probes.hit(asked, weights, place) else "✗") if place in asked else ""
    return (
        Span(words[place], "name"),
        (Span("–" if most is None else words[most], "name"), f" {mark}"),
        "–" if most is None else percent(real(weights[place][most]), 0),
        Span("root" if governor < 0 else words[governor], "name"),
        str(example["relations"][place]),
    )


def _part(name: str, section: Part) -> Iterator[Block]:
    """A section below those of the relations."""
    yield Prose(ANSWERS[name](section), "answer")
    yield Prose(READINGS[name], "reading")
    squares = tuple(_section_squares(name, section))
    if name == "speech":
        signs = (
            Figure(drawings.shades("n"), "as even attention", "a fourth"),
            Figure(drawings.shades("p"), "four times"),
        )
        yield Group(signs, "key")
    if name == "importance":
        shown = Group(squares, "cells")
        curve = Figure(Chart("pruning", section))
        yield Group((curve, shown), "figures") if len(section.get("curve") or ()) > 1 else shown
    elif squares:
        yield Group(squares, "cells broad" if name == "speech" else "cells")
    if name in TABLES:
        yield TABLES[name](section)
    if numbers := _section_numbers(name, section):
        yield Fold("Every layer and head as numbers", (numbers,))


def _section_squares(name: str, section: Part) -> Iterator[Figure]:
    if name == "speech":
        for layer, heads in enumerate(section["share"]):
            label = f"Profiles of the heads of layer {layer} over parts of speech"
            yield _square(f"layer {layer}", drawings.profile(heads, section["uniform"], section["tags"], label), "")
    elif name == "importance":
        peak = _peak(section["importance"])
        where = _where(section["importance"], peak)
        drawing = drawings.square(section["importance"], "Importance of every head", Shade(0.0, peak), where)
        yield _square("importance", drawing, f"The darkest is the largest; ring: layer {where[0]}, head {where[1]}")
    elif name in ("coreference", "negation"):
        chosen = section["layer"], section["head"]
        drawing = drawings.square(section["every"], f"Test accuracy of every head for {name}", ringed=chosen)
        yield _square("accuracy", drawing, f"layer {chosen[0]}, head {chosen[1]}: {percent(real(section['accuracy']))}")
        if section.get("confusion"):
            yield _confusion(section["confusion"], section.get("best_confusion"))


def _confusion(values: Cells, best: float | None) -> Figure:
    """Cross-entropies turned round: dark is low, and low is good."""
    known = [real(value) for row in values for value in row if not math.isnan(real(value))]
    least, most = min(known, default=0.0), max(known, default=1.0)
    turned = [[most - real(value) for value in row] for row in values]
    drawing = drawings.square(turned, "Confusion of every head", Shade(0.0, most - least))
    caption = f"from {number(least, 2)} (darkest) to {number(most, 2)}; lowest on dev texts: {number(real(best), 2)}"
    return _square("confusion", drawing, caption)


def _section_numbers(name: str, section: Part) -> Table | None:
    if name == "importance":
        return _numbers("importance × 100", section["importance"], Shade(0.0, _peak(section["importance"])))
    return _numbers("accuracy in %", section["every"]) if "every" in section else None


def _peak(values: Cells) -> float:
    return max((real(value) for row in values for value in row if value is not None), default=0.0)


def _where(values: Cells, wanted: float) -> tuple[int, int]:
    """The layer and the head of a number; beyond all of them where it is not there."""
    for layer, row in enumerate(values):
        for head, value in enumerate(row):
            if value is not None and value == wanted:
                return layer, head
    return -1, -1
