"""The audit of a model as a document: verdict, leaderboard, what was audited, audits, examples, glossary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from assay.document import (
    Block,
    Browser,
    Card,
    Cell,
    Code,
    Column,
    Document,
    Figure,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Phrases,
    Prose,
    Row,
    Section,
    Span,
    Table,
    Words,
    columns,
    grid,
    plain,
    some,
)
from assay.grading.grade import CAPTION, leading, yardstick
from assay.grading.leaderboard import Leaderboard, leaderboard
from assay.grading.leaderboard import Row as Ranked
from assay.lookup import NOT_APPLICABLE
from assay.records import Record
from assay.report import html
from assay.report.console import NAME
from assay.report.examples import browse, groups, notes
from assay.report.facts import KINDS, facts, glossary, left_out, origins
from assay.report.heatmaps import sampled
from assay.report.outcome import Outcome, outcome, together
from assay.report.save import save
from assay.report.sections import Section as About
from assay.report.sections import captions, sections
from assay.report.tables import MANY, TIE, Flips, Matrix, own_rows
from assay.stories import Grid
from assay.trees import Tree
from assay.writing import count, interval, number

SCHEMA, VERSION = "assay.report", 1
SCRIPTS = ("grid.js", "browser.js")
WHOLE = "all"
GRADES = (
    "Each card is one published question that was put to the model. Its grade is about {about}, by the rule that "
    "stands in the card; where no rule can be defended, the card is measured only."
)
HOW = (
    "The headline is about the explainer with the largest number, and about attention, the heatmap that is asked about "
    "most. A pass becomes a warning when the model itself is near chance. The cards below do not decide whether words "
    "may be shown: they answer the questions of the papers."
)
SHADED = (
    "Each line shows the same text; the stronger the colour and the underline, the higher the score. The strongest "
    "word of a line sets its scale, so shades compare words within a line, not between lines. Words below one "
    "sixteenth of the strongest stay plain. Hover over a word, or move to it with the tab key, to see its score."
)
SCALE: Words = (
    *("no weight, ", Span("some", "p2"), " ", Span("more", "p5"), " ", Span("most", "p8")),
    *("; where an explainer has a sign, ", Span("dashed", "n2"), " ", Span("blue", "n5"), " ", Span("words", "n8")),
    " speak against the predicted class.",
)
DIVIDED = (
    "How a decision falls apart into phrases, from the whole text to its words. A bar stands over the words of a "
    "phrase; a phrase that stays whole for long is one whose words work together. Where it was measured, the cohesion "
    "beneath says how much the strongest phrase counts by its words standing together (Chen et al., 2020)."
)
FILES: Words = (
    *("This command made the audit; all numbers lie beside this page in ", Span("summary.json", "code"), ", "),
    *(Span("instances.parquet", "code"), " and ", Span("examples.parquet", "code"), "."),
)


def render(record: Record) -> str:
    """The report as the text of one HTML file; the same record gives the same text."""
    return html.render(document(record))


def write(record: Record, path: Path, form: str = "html") -> None:
    """Writes the report as html, pdf, md or json, whole or not at all."""
    save(document(record, form), path, form)


def document(record: Record, form: str = "html") -> Document:
    """The report of an audit; a form that cannot be opened and browsed has fewer examples, text alone no figures."""
    made_by, name = str(record.summary.get("assay", "")), str(record.summary["corpus"]["name"])
    return Document(
        title=f"Audit of {name}",
        subject=name,
        sections=() if form == "json" else tuple(_Page(record, form).sections()),
        made_by=made_by,
        created=record.summary.get("created") or "",
        skip="Skip to the verdict",
        footer=f"Made by assay {made_by}. This page is complete in itself: it asks for nothing from the network. Its "
        "script only browses the examples; all else can be read and printed without it.",
        data=data(record) if form == "json" else None,
        scripts=SCRIPTS,
    )


def brief(record: Record, width: int, words: bool = True) -> tuple[Block, ...]:
    """What a terminal so wide shows: headline, counts, caveats, the result of each audit, tables that hold a number."""
    found, board = outcome(record), leaderboard(record)
    cards = [Row((Cell(grade=card.grade), Span(card.name), card.result)) for card in found.cards]
    heads = (Column(), Column(), Column(wide=True))
    return some(
        Prose(Span(found.headline), "lead"),
        _worded(found.tally, "tally"),
        [Prose(each, "caveat") for each in found.caveats],
        Table(heads, tuple(cards), layout="plain", role="results") if cards else None,
        _graded(record, found, words) if found.graded else (),
        Fold("Leaderboard", _ranked(board, width)) if board else None,
    )


class _Page:
    """The sections of a page on one record, in one form."""

    def __init__(self, record: Record, form: str) -> None:
        self.record, self.form, self.summary = record, form, record.summary
        self.printed = form != "html"
        self.board = leaderboard(record)
        self.order = [row.name for row in self.board.rows] if self.board else []
        self.captions, self.figures = captions(record), _figures(record) if form in ("html", "pdf") else {}

    def sections(self) -> Iterator[Section]:
        yield Section("verdict", "", self.verdict(), "Verdict")
        if self.board:
            yield Section("leaderboard", "Leaderboard", tuple(_board(self.board)), "Leaderboard")
        yield Section("audited", "What was audited", self.audited(), "What was audited")
        if block := together(self.record):
            title = "Four tests of attention, together"
            yield Section("together", title, self.together(block), "Four tests")
        if cards := [self.card(about, place) for place, about in enumerate(sections(self.record), start=1)]:
            told = GRADES.format(about=leading(self.record) or "the explanations")
            opened = "" if self.printed else " Open a card for its figures and numbers."
            yield Section("audits", "Audits", (Prose(told + opened), *cards), "Audits")
        if examples := groups(self.record, self.order, self.printed):
            yield Section("examples", "Examples", tuple(self.examples(examples)), "Examples")
        if divided := self.summary.get("trees"):
            yield Section("phrases", "Phrases", (Prose(DIVIDED), *_divided(divided)), "Phrases")
        yield Section("provenance", "Provenance", (Group(self.provenance(), "box"),), "Provenance")
        words = {**self.summary["explainers"], **glossary(self.record)}
        yield Section("glossary", "Glossary", (Pairs(tuple(words.items())),), "Glossary")

    def verdict(self) -> tuple[Block, ...]:
        found, rule = outcome(self.record), yardstick(self.record)
        many = len(found.verdicts) > MANY
        lead, colon, because = found.headline.partition(": ")
        kicker = "Heatmap" if found.explainer is None else f"Heatmap of {found.explainer}"
        table = verdict_table(self.record)
        if many or not found.graded:
            called = f"All {len(found.verdicts)} verdicts in words" if found.graded else "Why no explainer is graded"
            told: Block = Fold(called, (table,))
        else:
            told = table
        return some(
            Headline(f"{lead}{colon.strip()}", because, kicker, found.grade),
            _worded(found.tally, "tally"),
            [Prose(each, "caveat") for each in found.caveats],
            self.figure("verdict", CAPTION, "wide tall" if many else "wide"),
            told,
            Fold("How the grades are given", (Prose(rule.how), Prose(rule.reason), Prose(HOW))),
        )

    def figure(self, name: str, caption: str = "", role: str = "") -> Figure | None:
        drawn = self.figures.get(name)
        return None if drawn is None else Figure(drawn, caption or self.captions.get(name, ""), name=name, role=role)

    def drawn(self, names: Iterable[str], reading: str) -> Group:
        return Group(some(*map(self.figure, names), _worded(reading, "reading")), "figures")

    def audited(self) -> tuple[Block, ...]:
        left, own = left_out(self.record), own_rows(self.record)
        title = "What the explainers say of themselves"
        return some(
            Pairs(tuple(facts(self.record))),
            Heading("Explainers that cannot serve this model") if left else None,
            Pairs(tuple(left), "left-out") if left else None,
            Fold(title, (_table(own, title),), open=len(own.rows) <= 8) if own.rows else None,
        )

    def together(self, block: Mapping[str, Any]) -> tuple[Block, ...]:
        rows = [[test[key] for key in ("name", "question", "found", "says")] for test in block["tests"]]
        table = grid(("test", "question", "found", "what it says"), rows, numbers=4)
        return (
            Prose(block["closing"], "answer"),
            Table(table.columns, table.rows, layout="stack", role="together"),
            self.drawn([block["figure"]], block["reading"]),
            Prose(f"After Wiegreffe and Pinter (2019). {block['limits']}", "soft"),
        )

    def card(self, about: About, place: int) -> Card:
        inside = _unfit(about) if about.why_not else self.answered(about)
        blocks = some(_worded(about.question, "about"), inside)
        return Card(about.title, about.grade, about.brief, blocks, f"audit-{place}")

    def answered(self, about: About) -> tuple[Block, ...]:
        rule = (" ", Span(about.rule, "soft")) if about.rule else ()
        kind = f"The numbers are {KINDS.get(about.kind, about.kind)}; means over texts have 95 % intervals."
        flips, *tables = _tables(about)
        return some(
            _worded(about.answer, "answer"),
            Prose((Span(f"Why {about.grade}."), f" {about.why}", *rule), "why"),
            _worded(about.remark, "about"),
            self.drawn(about.figures, about.reading),
            Group(flips, "contingency") if flips else None,
            *tables,
            _numbers(about),
            Prose(f"{_paper(about)}{kind if about.kind else ''}".strip(), "soft"),
        )

    def examples(self, found: Sequence[Any]) -> Iterator[Block]:
        told, browser = notes(self.record), None if self.printed else browse(self.record, self.order)
        more = (
            f" With scripts allowed this page shows {len(browser['examples'])} examples and all scores."
            if browser
            else ""
        )
        yield from some(_worded(" ".join(told), ""), None if browser is None else Browser(browser))
        blocks: list[Block] = [] if self.printed else [Prose(SHADED + more)]
        blocks.append(Prose(SCALE, "legend heat"))
        for place, (choice, examples) in enumerate(found):
            shown = (replace(each, open=place == 0 and each is examples[0]) for each in examples)
            blocks += [Heading(choice.title), Prose(f"Rule: {choice.rule}.", "rule"), *shown]
        yield Group(tuple(blocks), "static")

    def provenance(self) -> tuple[Block, ...]:
        plan = self.summary.get("plan", {})
        held = [(name, json.dumps(value, ensure_ascii=False)) for name, value in plan.items() if value is not None]
        pairs = Pairs(tuple((name, Span(value, "code")) for name, value in held))
        whole = pairs if self.printed else Code(json.dumps(plan, indent=2, ensure_ascii=False))
        command = Code(self.summary.get("command") or "not known")
        return Prose(FILES), command, Pairs(tuple(origins(self.record))), Fold("The whole plan", (whole,))


def data(record: Record) -> dict[str, Any]:
    """Everything that the page says, and every number behind it, for JSON."""
    found, board, block, told = outcome(record), leaderboard(record), together(record), captions(record)
    order = [row.name for row in board.rows] if board else []
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": f"Audit of {record.summary['corpus']['name']}",
        "made_by": f"assay {record.summary.get('assay', '')}".strip(),
        "created": record.summary.get("created"),
        "verdict": {
            "headline": found.headline,
            "grade": found.grade,
            "explainer": found.explainer,
            "graded": found.graded,
            "tally": found.tally,
            "caveats": list(found.caveats),
            "yardstick": asdict(yardstick(record)),
            "caption": CAPTION,
            "explainers": [asdict(verdict) for verdict in found.verdicts],
            "table": _gridded(verdict_table(record).parted[0]),
        },
        "leaderboard": None if board is None else _ranking(record, board),
        "audited": facts(record),
        "left_out": left_out(record),
        "own": _gridded(_table(own_rows(record))),
        "four_tests": block
        and {key: value for key, value in block.items() if key != "figure"}
        | {"figures": [{"name": block["figure"], "caption": told.get(block["figure"], "")}]},
        "grades": GRADES.format(about=leading(record) or "the explanations"),
        "audits": [_section(about, told) for about in sections(record)],
        "example_notes": notes(record),
        "examples": [
            {"title": choice.title, "rule": choice.rule, "examples": list(map(sampled, examples))}
            for choice, examples in groups(record, order, printed=True)
        ],
        "provenance": {
            "command": record.summary.get("command"),
            "facts": origins(record),
            "plan": record.summary.get("plan", {}),
        },
        "glossary": {**record.summary["explainers"], **glossary(record)},
        "findings": record.summary["findings"],
    }


def _section(about: About, told: Mapping[str, str]) -> dict[str, Any]:
    same = ("name", "title", "question", "grade", "why", "rule", "answer", "remark", "reading", "paper", "kind")
    flips, *tables = _tables(about)
    shown = [] if about.grade == NOT_APPLICABLE else [*flips, *tables]
    return {name: getattr(about, name) for name in same} | {
        "kind_meaning": KINDS.get(about.kind, about.kind),
        "figures": [{"name": name, "caption": told.get(name, "")} for name in about.figures],
        "tables": list(map(_gridded, shown)),
        "numbers": _gridded(_table(about.grid)),
    }


def _ranking(record: Record, board: Leaderboard) -> dict[str, Any]:
    """The leaderboard as numbers: every mean with its interval, whether it is best or tied with the best."""
    found = {(f.audit, f.measure, f.subject): f for f in record.findings if f.group == WHOLE}

    def told(row: Ranked) -> dict[str, Any]:
        cells = []
        for measure, cell in zip(board.measures, row.cells, strict=True):
            mean = found.get((measure.audit, measure.name, row.name))
            ends = {name: getattr(mean, name, None) for name in ("mean", "low", "high")}
            cells.append({**ends, "n": mean.n if mean else 0, "best": cell.best, "tied": cell.tied})
        rank = None if row.rank == "–" else float(row.rank)
        return {"explainer": row.name, "verdict": row.verdict, "mean_rank": rank, "cells": cells}

    measures = [
        {
            "audit": measure.audit,
            "measure": measure.name,
            "title": measure.title,
            "more_is_better": measure.rises,
            "counts_in_rank": measure.faithful,
            "meaning": measure.meaning,
        }
        for measure in board.measures
    ]
    table = next(block for block in _board(board) if isinstance(block, Table))
    best = [
        [place for place, cell in enumerate(row.cells, start=3) if cell.best] for row in (*board.rows, *board.apart)
    ]
    return {
        "order": board.order,
        "notes": list(board.notes),
        "measures": measures,
        "rows": list(map(told, board.rows)),
        "baselines": list(map(told, board.apart)),
        "table": _gridded(table) | {"best": best, "apart": len(board.rows)},
    }


def _gridded(table: Table) -> dict[str, Any]:
    """A table as text; columns from `first_number` on hold numbers."""
    numbers = [place for place, column in enumerate(table.columns) if column.number]
    cells = [[each if isinstance(each, Cell) else Cell(each) for each in row.cells] for row in table.rows]
    levels = [[cell.level for cell in row[1:]] for row in cells]
    return {
        "title": plain(table.caption),
        "columns": [plain(column.head).replace("\u00ad", "").replace("\u00a0", " ") for column in table.columns],
        "rows": [[_cell(cell) for cell in row] for row in cells],
        "first_number": numbers[0] if numbers else 1,
    } | ({"levels": levels} if table.layout in ("dense", "roomy") else {})


def _cell(cell: Cell) -> str:
    return " ".join(filter(None, (plain(cell.text), cell.grade, plain(cell.mark))))


def verdict_table(record: Record) -> Table:
    """A row for each explainer: grade, effect, interval, null and n, and what they say in words."""
    heads = (
        Column("explainer"),
        Column("verdict", role="grade"),
        *columns(yardstick(record).symbol, "95 % interval", "null", "n", numbers=0),
        Column("in words", role="words", wide=True, below=True),
    )
    rows = []
    for v in outcome(record).verdicts:
        ends, size = interval(v.low, v.high), count(v.n) if v.n else "–"
        cells = (v.name, Cell(grade=v.grade), number(v.effect), ends, number(v.null), size, Cell(v.sentence, v.more))
        rows.append(Row(cells, "empty" if v.effect is None else ""))
    return Table(heads, tuple(rows), "Verdicts", "stack", "verdicts")


def _board(board: Leaderboard) -> Iterator[Block]:
    costs = " Costs are passes forward and backward through the model for each text, and seconds in all."
    yield Prose(
        (
            f"Rows stand {board.order}. ",
            Span("Bold"),
            f" is the best of a column; {TIE} marks what is not clearly worse: it belongs to the 95 % model confidence "
            f"set over the same texts. ↑ more is better, ↓ less is better.{costs if 'forward' in board.costs else ''}",
        )
    )
    heads = (
        Column("explainer"),
        *columns("verdict", "mean rank", numbers=0),
        *(Column(f"{each.head}\u00a0{each.arrow}", True, "" if each.faithful else "aside") for each in board.measures),
        *(Column(each, True, "cost") for each in board.costs),
    )
    rows = []
    for row in (*board.rows, *board.apart):
        cells = [
            Cell(Span(cell.text), role="best")
            if cell.best
            else Cell(cell.text, mark=TIE, role="tied")
            if cell.tied
            else cell.text
            for cell in row.cells
        ]
        first = (Cell(row.name, title=row.name), row.verdict, row.rank)
        rows.append(Row((*first, *cells, *row.costs), "apart" if row in board.apart else ""))
    role = "board broad" if len(board.measures) > 7 else "board"
    yield Table(heads, tuple(rows), "Leaderboard", role=role)
    yield from map(Prose, board.notes)
    meanings = ((f"{each.title}\u00a0{each.arrow}", _meaning(each)) for each in board.measures)
    yield Pairs(tuple(meanings), "measures")


def _meaning(measure: Any) -> str:
    return "; ".join(filter(None, (measure.meaning, measure.measure.caution)))


def _graded(record: Record, found: Outcome, words: bool) -> tuple[Block, ...]:
    """The verdicts for a terminal; of many explainers only the one of the headline gets words."""
    table, said = verdict_table(record).parted
    short = Table(table.columns, table.rows, table.title, "side", "verdicts")
    told = said.rows if said and words else ()
    chosen = [row for row in told if len(found.verdicts) <= MANY or row[0] == leading(record)]
    return some(short, Pairs(tuple((Span(plain(name)), each) for name, each in chosen)) if chosen else None)


def _ranked(board: Leaderboard, width: int) -> tuple[Block, ...]:
    """The leaderboard for a terminal so wide: as many measures, from the most telling on, as fit."""
    rows = (*board.rows, *board.apart)
    costs = [_costs(board.costs, row.costs) for row in rows]
    spent = [min(NAME, max(len(row.name) for row in rows)), 9, 4]
    spent += [max(7, *map(len, cost)) for cost in zip(*costs, strict=True)]
    ends = accumulate(max(7, len(measure.short) + 2) + 2 for measure in board.measures)
    fitting = max(1, sum(end <= width - sum(spent) - 2 * len(spent) for end in ends))
    left = len(board.measures) - fitting
    heads = [f"{measure.short} {measure.arrow}" for measure in board.measures[:fitting]]
    lines = []
    for row, cost in zip(rows, costs, strict=True):
        cells = [
            Cell(Span(f"{cell.text}*"), role="best") if cell.best else f"{cell.text}{TIE if cell.tied else ' '}"
            for cell in row.cells[:fitting]
        ]
        lines.append(Row((row.name, row.verdict, row.rank, *cells, *cost), "apart" if row in board.apart else ""))
    table = Table(
        columns("explainer", "verdict", "rank", *heads, *_costs(board.costs)),
        tuple(lines),
        "Leaderboard",
        "side",
        "board",
    )
    more = f" {left} more {'measures stand' if left > 1 else 'measure stands'} in the report." if left else ""
    legend = f"* best, {TIE} not clearly worse than it (model confidence set, 95 %). Ordered {board.order}."
    passes = f"Passes are forward + backward for each text, seconds in all.{more}"
    return (table, *(Prose(each, "soft") for each in (legend, passes, *board.notes)))


def _costs(heads: Sequence[str], costs: Sequence[str] | None = None) -> list[str]:
    """A row's costs, or the heads above them; both kinds of passes share a column."""
    held = heads if costs is None else costs
    if tuple(heads[:2]) != ("forward", "backward"):
        return list(held)
    return [("passes" if costs is None else " + ".join(costs[:2]).replace("– + –", "–")), *held[2:]]


def _tables(about: About) -> tuple[Any, ...]:
    """What is worth reading at once: the tables of flips together, the short table, the squares."""
    short = [] if about.short is None else [_table(about.short, about.title)]
    return tuple(map(_flips, about.flips)), *short, *map(_matrix, about.matrices)


def _flips(flips: Flips) -> Table:
    caption = (
        "Erased alone, which changes the decision: ",
        Span(flips.top),
        f", or {flips.other}? Share of texts, n = {flips.n}.",
    )
    rows = [
        ("this one changes it", Cell(flips.both, ("both",)), Cell(flips.top_only, ("only this one",), role="good")),
        (
            "this one does not",
            Cell(flips.other_only, ("only the other",), role="bad"),
            Cell(flips.neither, ("neither",)),
        ),
    ]
    heads = columns("", "the other changes it", "the other does not")
    return Table(heads, tuple(map(Row, rows)), layout="plain", role="flips", caption=caption)


def _matrix(matrix: Matrix) -> Table:
    hundredths = "" if matrix.roomy else " Cells hold hundredths."
    rows = [
        Row((name, *(Cell(cell.text, level=cell.level, title=cell.title) for cell in row)))
        for name, row in zip(matrix.names, matrix.rows, strict=True)
    ]
    return Table(
        tuple(Column(name) for name in ("", *matrix.names)),
        tuple(rows),
        f"{matrix.kind.title} of every two {matrix.kind.of}",
        "roomy" if matrix.roomy else "dense",
        "turned",
        (Span(matrix.kind.title), f": {matrix.kind.reading}.{hundredths}"),
    )


def _table(held: Grid, title: str = "") -> Table:
    """A grid as a table; rows of single classes are marked, where paper has no room for them."""
    made = grid(held.columns, held.rows, held.first_number, title)
    if "predicted class" not in held.columns:
        return made
    place = held.columns.index("predicted class")
    rows = (Row(row.cells, "" if row.cells[place] == WHOLE else "part") for row in made.rows)
    return Table(made.columns, tuple(rows), title)


def _numbers(about: About) -> Fold | None:
    if not about.grid.rows:
        return None
    over = " over all texts" if about.whole else ""
    where: Words = ("By predicted class they stand in ", Span("summary.json", "code"), ".")
    table = _table(about.grid, f"All numbers: {about.name}")
    return Fold(
        f"All numbers{over} ({len(about.grid.rows)} rows)",
        some(Prose(where, "soft") if about.whole else None, table),
        role="numbers",
    )


def _unfit(about: About) -> tuple[Block, ...]:
    return some(_worded(about.why_not or "", "answer"), _worded(_paper(about).strip(), "soft"))


def _paper(about: About) -> str:
    return f"After {about.paper}. " if about.paper else ""


def _divided(found: Iterable[Mapping[str, Any]]) -> Iterator[Block]:
    for each in found:
        other = f" (the label says {each['label']})" if each["label"] != each["predicted"] else ""
        yield Heading(f"Example {each['example']}: {each['predicted']}{other}")
        for tree in each["trees"]:
            yield Phrases(Tree.of(tree), each["words"])


def _figures(record: Record) -> Mapping[str, Any]:
    from assay.report.figures import figures

    return figures(record)


def _worded(text: str | None, role: str) -> Prose | None:
    return Prose(text, role) if text else None
