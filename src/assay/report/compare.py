"""Runs side by side as a document: what they agree on, what exceeds noise, and what differs in how they were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay import __version__
from assay.document import (
    Block,
    Bullets,
    Cell,
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
    columns,
    grid,
    some,
)
from assay.files import write_text
from assay.grading.differences import Comparison, Difference, Quantity, differences, provenance, seed, spreads
from assay.grading.grade import ranked, standing, yardstick
from assay.records import Record
from assay.report import compare_words as words
from assay.report import html
from assay.report.compare_words import MARKS, NOISE, behind, isolated, plain, worded
from assay.report.console import NAME
from assay.writing import chance, count, interval, line, number

KIND = "assay comparison"
SIGNS = ('<meta name="generator" content="assay ', f"<!-- {KIND} -->", f'"kind": "{KIND}"')
"""By one of these near its beginning a file is known as a comparison of ours; a printed one by its title."""

PRINTED = b" runs compared)/Author(assay "
BEGINNING = 2000
SHOWN = 150
"""Of more differences in one table only the surest are shown; all stand in the JSON."""

NAMED = 2
"""So many sides are named in a cell; of more their number is."""

FOLDED = 12
"""More differences than this are shown only when somebody asks for them."""

COLUMN = 12  # letters of the name of a run in a terminal


def render(records: Mapping[str, Record]) -> str:
    """The comparison as the text of one HTML file; the same records give the same text."""
    return html.render(document(differences(records)))


def write(records: Mapping[str, Record], path: Path) -> None:
    """Writes the comparison, whole or not at all."""
    write_text(path, render(records))


def document(comparison: Comparison) -> Document:
    """The whole page: the verdict, the runs, explainers in each, differences, seeds, provenance, how to read it."""
    runs = len(comparison.records)
    return Document(
        title=f"{runs} runs compared",
        subject=f"{runs} runs compared",
        sections=tuple(_sections(comparison)),
        made_by=__version__,
        kind="comparison",
        skip="Skip to the verdict",
        footer=f"Made by assay {__version__}. Each run’s own report tells what lies behind its numbers.",
        data=data(comparison),
    )


def brief(comparison: Comparison, width: int) -> tuple[Block, ...]:
    """What a terminal so wide shows: the verdict, and the explainers in as many runs as fit."""
    top = some(
        Headline(worded(words.headline(comparison))),
        Bullets(tuple(map(worded, words.bullets(comparison)))),
        [Prose(worded(each), "caveat") for each in words.caveats(comparison)],
    )
    quantity = comparison.headline
    if quantity is None:
        return top
    fitting = max(1, (width - NAME) // (COLUMN + 3))
    more = len(comparison.records) - fitting
    rest = f" {more} more {'run stands' if more == 1 else 'runs stand'} in the file." if more > 0 else ""
    legend = f"{quantity.title}; ▲ above, ▼ below another run by more than noise.{rest}"
    return some(top, _short(comparison, quantity, fitting), Prose(legend))


def ours(path: Path) -> bool:
    """Whether a file is a comparison that we wrote, and may be written again."""
    with path.open("rb") as file:
        start = file.read(BEGINNING)
        if start.startswith(b"%PDF"):
            return PRINTED in start + file.read()
    beginning = start.decode("utf-8", "replace")
    if SIGNS[0] in beginning:
        return ", comparison" in beginning.partition(SIGNS[0])[2].partition(">")[0]
    return any(sign in beginning for sign in SIGNS[1:])


def data(comparison: Comparison) -> dict[str, Any]:
    """The comparison with every number, for JSON."""
    return {
        "kind": KIND,
        "assay": __version__,
        "headline": plain(words.headline(comparison)),
        "sentences": list(map(plain, words.bullets(comparison))),
        "caveats": list(map(plain, words.caveats(comparison))),
        "runs": list(_runs(comparison)),
        "groups": [{"runs": list(group), "spread": list(spreads(comparison, group))} for group in comparison.groups],
        "values": [
            {"measure": quantity.measure, "audit": quantity.audit, "explainer": subject, "run": run} | asdict(value)
            for (quantity, subject, run), value in comparison.values.items()
        ],
        "differences": list(map(_difference, comparison.differences)),
        "not_compared": [{"what": what, "why": why} for what, why in comparison.not_compared],
        "different": dict(provenance(comparison.records)[0]),
        "rules": [*words.RULES, *words.LIMITS],
    }


def _sections(comparison: Comparison) -> Iterator[Section]:
    yield Section("verdict", "", _verdict(comparison), "Verdict")
    yield Section("runs", "The runs", tuple(_run_table(comparison)), "Runs")
    yield _explainers(comparison)
    if comparison.differences:
        yield Section("differences", "Differences", tuple(_differences(comparison)), "Differences")
    lacking = [(Span(what, "name"), f": {why}.") for what, why in comparison.not_compared]
    if lacking or words.lacking(comparison):
        items = (*lacking, *map(worded, words.lacking(comparison)))
        yield Section("lacking", "What was not compared", (Bullets(items),))
    if comparison.groups:
        yield Section("seeds", "Runs that differ only by their seed", tuple(_seeds(comparison)), "Seeds")
    made = tuple(_provenance(comparison))
    yield Section("provenance", "What differs in how the runs were made", made, "What differs")
    rules = Bullets(words.RULES), Heading("Limits"), Bullets(words.LIMITS)
    yield Section("reading", "How to read this", rules, "How to read this")


def _verdict(comparison: Comparison) -> tuple[Block, ...]:
    bullets = tuple(map(worded, words.bullets(comparison)))
    lead, because = worded(words.graded(comparison)), worded(words.tally(comparison))
    return some(
        Headline(lead, because, f"{len(comparison.records)} runs side by side"),
        Bullets(bullets, "bullets points") if bullets else None,
        [Prose(worded(each), "caveat") for each in words.caveats(comparison)],
    )


def _runs(comparison: Comparison) -> Iterator[dict[str, str]]:
    """Of each run: model, corpus, seed, texts, accuracy, the grade of its headline and the number behind it."""
    groups = {name: f"group {place}" for place, names in enumerate(comparison.groups, start=1) for name in names}
    for name, record in comparison.records.items():
        model = record.summary.get("model", {})
        trained, planned = seed(record), record.summary.get("plan", {}).get("seed")
        best, effect = next(iter(ranked(record)), None), "–"
        if best is not None:
            reached = f"{number(best.effect, 2)} ({interval(best.low, best.high, 2)})"
            effect = f"{line(best.name)}: {yardstick(record).symbol} {reached}"
        yield {
            "name": name,
            "model": line(str(model.get("description") or "–")),
            "corpus": line(str(record.summary["corpus"]["name"])),
            "seed": str(planned if trained is None else trained) if (trained, planned) != (None, None) else "–",
            "texts": count(record.examples.num_rows),
            "accuracy": number((model.get("test") or {}).get("accuracy")),
            "grade": standing(record),
            "effect": effect,
            "group": groups.get(name, ""),
        }


def _run_table(comparison: Comparison) -> Iterator[Block]:
    heads = (
        Column("run"),
        Column("grade"),
        Column("model", wide=True),
        Column("corpus", wide=True, role="named"),
        *columns("seed", "texts", "accuracy", numbers=0),
        Column("behind the grade", wide=True),
    )
    rows = []
    for run in _runs(comparison):
        name = Cell(Span(run["name"], "name"), (run["group"],) if run["group"] else ())
        facts = (Span(run["model"], "name"), Span(run["corpus"], "name"), run["seed"], run["texts"], run["accuracy"])
        rows.append(Row((name, Cell(grade=run["grade"]), *facts, Span(run["effect"], "name"))))
    yield Table(heads, tuple(rows), layout="stack", role="runs")
    if comparison.groups:
        yield Prose("Runs of one group differ only by the seed of training.", "soft")


def _explainers(comparison: Comparison) -> Section:
    shown = comparison.headline
    if shown is None:
        none = "No explainer has the same measure in two of these runs. Audit them with the same explainers and audits."
        return Section("explainers", "Nothing to put side by side", (Prose(none),))
    better = "" if shown.rises is None else f"; {'more' if shown.rises else 'less'} is better"
    intro = (
        f"{shown.title} is {shown.meaning}{better}. Below each mean stand its 95 % interval and the number of texts. ",
        Span("▲ above"),
        " and ",
        Span("▼ below"),
        " mark what exceeds noise.",
    )
    others = [each for each in comparison.quantities if each != shown]
    blocks = some(
        Prose(intro),
        _matrix(comparison, shown),
        _panels(comparison, shown),
        [_folded(comparison, quantity) for quantity in others],
    )
    return Section("explainers", f"Explainers in each run, by {shown.title}", blocks, "Explainers")


def _panels(comparison: Comparison, quantity: Quantity) -> Iterable[Block]:
    from assay.report.figures import run_panels

    figures = [Figure(drawing, title=Span(name, "name")) for name, drawing in run_panels(comparison)]
    if figures:
        yield Group(tuple(figures), "panels")
        yield Prose(
            f"{quantity.title} in each run: mean and 95 % interval, all on one scale. The shape is the grade: ● pass, "
            "▲ warn, ◆ fail, ■ not graded. The thin tick is what random scores reach in that run.",
            "soft",
        )


def _folded(comparison: Comparison, quantity: Quantity) -> Fold:
    marked = sum(each.quantity == quantity for each in comparison.exceeding)
    better = "" if quantity.rises is None else f" ({'more' if quantity.rises else 'less'} is better)"
    some = f"{marked} {'difference exceeds' if marked == 1 else 'differences exceed'} noise"
    summary = f"{quantity.title}{better}: {some if marked else 'nothing exceeds noise'}"
    return Fold(summary, (Prose(f"{quantity.meaning.capitalize()}.", "soft"), _matrix(comparison, quantity)))


def _matrix(comparison: Comparison, quantity: Quantity) -> Table:
    """Explainers in rows and runs in columns: values with intervals and grades, and what exceeds noise marked."""
    names = list(comparison.records)
    rows = tuple(
        Row((Span(line(subject), "name"), *(_cell(comparison, quantity, subject, run) for run in names)))
        for subject in comparison.subjects(quantity)
    )
    title = f"{quantity.title} of each explainer in each run"
    return Table(columns("explainer", *names, numbers=99), rows, title, "side")


def _cell(comparison: Comparison, quantity: Quantity, subject: str, run: str) -> Cell:
    value = comparison.values.get((quantity, subject, run))
    if value is None:
        return Cell("not there", role="none")
    told = [Span(f"{mark} {text}", "remark") for mark, text in _remarks(comparison, quantity, subject, run)]
    behind = f"{interval(value.low, value.high)}, n = {count(value.n)}"
    return Cell(number(value.mean), (behind, *told), value.grade or "", role="exceeds" if told else "")


def _remarks(comparison: Comparison, quantity: Quantity, subject: str, run: str) -> Iterator[tuple[str, str]]:
    """A mark and words for each side that a run lies above or below, by more than noise."""
    over: list[str] = []
    under: list[str] = []
    for each in comparison.exceeding:
        if (each.quantity, each.subject) != (quantity, subject):
            continue
        if run in each.first.runs:
            (over if each.contrast.gap > 0 else under).append(each.second.name)
        elif run in each.second.runs:
            (under if each.contrast.gap > 0 else over).append(each.first.name)
    for mark, way, names in (("▲", "above", over), ("▼", "below", under)):
        if names:
            yield mark, f"{way} {' and '.join(names) if len(names) <= NAMED else f'{len(names)} others'}"


def _short(comparison: Comparison, quantity: Quantity, fitting: int) -> Table:
    names = list(comparison.records)[:fitting]
    rows = []
    for subject in comparison.subjects(quantity):
        cells = []
        for run in names:
            value = comparison.values.get((quantity, subject, run))
            marks = tuple(mark for mark, _ in _remarks(comparison, quantity, subject, run))
            cells.append(Cell("–") if value is None else Cell(number(value.mean), marks, value.grade or ""))
        rows.append(Row((line(subject)[:NAME], *cells)))
    heads = [name if len(name) <= COLUMN else f"{name[: COLUMN - 1]}…" for name in names]
    return Table(columns("explainer", *heads, numbers=99), tuple(rows), layout="side")


def _differences(comparison: Comparison) -> Iterator[Block]:
    made = len(comparison.differences)
    were = "comparison was" if made == 1 else "comparisons were"
    yield Prose(f"{made} {were} made; p-values are corrected for all of them (Holm, 1979).")
    noises = dict.fromkeys(each.noise for each in comparison.differences)
    yield Pairs(tuple((noise, f"{NOISE[noise]}.") for noise in noises))
    ordered = sorted(comparison.differences, key=lambda each: each.contrast.p)
    rest = [each for each in ordered if each.state != "exceeds noise"]
    exceeding = comparison.exceeding
    if exceeding:
        shown = exceeding[:SHOWN]
        summary = f"▲ What exceeds noise ({len(shown)} rows)"
        yield Fold(summary, (_gaps(shown),), len(shown) <= FOLDED)
    if rest:
        yield Fold(f"What does not ({len(rest[:SHOWN])} rows)", (_gaps(rest[:SHOWN], True),))
    if left := max(0, len(exceeding) - SHOWN) + max(0, len(rest) - SHOWN):
        yield Prose(f"{left} more rows stand in the JSON form of this comparison.", "soft")


def _gaps(found: Sequence[Difference], state: bool = False) -> Table:
    """A row for each difference; with its state where states differ."""
    heads = (
        Column("explainer"),
        *([Column("noise", role="state", wide=True)] if state else []),
        Column("measure", role="measure", wide=True),
        *columns("first", "second", numbers=9),
        *columns("first − second", "95 % interval", "p", "p, corrected", numbers=0),
        Column("over", wide=True),
    )
    rows = tuple(Row(tuple(_gap(each, state))) for each in found)
    return Table(heads, rows, layout="stack", role="gaps")


def _gap(each: Difference, state: bool) -> Iterator[Span | str]:
    yield Span(line(each.subject), "name")
    if state:
        yield f"{MARKS[each.state]} {each.state}"
    yield each.quantity.title
    yield Span(each.first.name, "name")
    yield Span(each.second.name, "name")
    yield number(each.contrast.gap)
    yield interval(each.contrast.low, each.contrast.high)
    yield chance(each.contrast.p)
    yield chance(each.adjusted)
    yield behind(each)


def _seeds(comparison: Comparison) -> Iterator[Block]:
    quantity = comparison.headline
    by = f", by {quantity.title}" if quantity else ""
    yield Prose(
        "How much the same number changes when the model is trained again: mean and standard deviation over the runs "
        f"of a group, the least and the most{by}."
    )
    heads = ("explainer", "mean", "spread over seeds", "least", "most")
    for place, group in enumerate(comparison.groups, start=1):
        names = ", ".join(map(isolated, group))
        yield Heading(worded(f"Group {place}: {names} ({len(group)} seeds)"))
        rows = [
            (Span(each["subject"], "name"), each["mean"], f"± {each['spread']}", each["least"], each["most"])
            for each in spreads(comparison, group)
        ]
        title = f"Spread over the seeds of group {place}"
        yield grid(heads, rows, title=title) if rows else Prose("No number is in all of its runs.", "soft")


def _provenance(comparison: Comparison) -> Iterator[Block]:
    different, same = provenance(comparison.records)
    if different:
        rows = tuple(Row((name, *(Span(text, "name") for text in texts))) for name, texts in different)
        heads = columns("fact", *comparison.records, numbers=99)
        yield Table(heads, rows, "What differs between the runs", "side", "facts")
    else:
        yield Prose("Nothing: plans, versions, models and data are the same.")
    if same:
        pairs = tuple((Span(name, "code"), Span(text, "name")) for name, text in same)
        yield Fold(f"The same in all runs ({len(same)} facts)", (Pairs(pairs, "same"),))


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "measure": each.quantity.measure,
        "audit": each.quantity.audit,
        "explainer": each.subject,
        "first": list(each.first.runs),
        "second": list(each.second.runs),
        "difference": each.contrast.gap,
        "low": each.contrast.low,
        "high": each.contrast.high,
        "p": each.contrast.p,
        "p_corrected": each.adjusted,
        "sizes": list(each.contrast.sizes),
        "shared_texts": each.shared,
        "noise": each.noise,
        "noise_meaning": NOISE[each.noise],
        "state": each.state,
    }
