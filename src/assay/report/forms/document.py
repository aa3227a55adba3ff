"""The whole report as plain data, from which every form but the page is written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from assay.records import Record
from assay.report.cards import RULES, grade
from assay.report.compared.together import FIGURE, together
from assay.report.examples import notes
from assay.report.facts import KINDS, facts, glossary, left_out, origins
from assay.report.forms.samples import samples
from assay.report.forms.tabled import board_data, board_table, gridded, section_tables
from assay.report.graders import NOT_APPLICABLE
from assay.report.leaderboard import leaderboard
from assay.report.sections import Section, captions, sections
from assay.report.tables import own_rows, verdict_rows
from assay.report.verdicts import caveats, headline, leading, standing, tally, verdicts
from assay.report.yardsticks import yardstick

SCHEMA, VERSION = "assay.report", 1
GRADES = (
    "Each of the audits below is one published question that was put to the model. Its grade is about {about}, by the "
    "rule that stands with it; where no rule can be defended, it is measured only."
)


def document(record: Record) -> dict[str, Any]:
    """What the page shows, in its order: verdict, leaderboard, what was audited, audits, examples, provenance."""
    board = leaderboard(record)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": f"Audit of {record.summary['corpus']['name']}",
        "made_by": f"assay {record.summary.get('assay', '')}".strip(),
        "created": record.summary.get("created"),
        "verdict": _verdict(record),
        "leaderboard": None if board is None else board_data(record, board) | {"table": board_table(board)},
        "audited": facts(record),
        "left_out": left_out(record),
        "own": gridded(own_rows(record)),
        "four_tests": _four_tests(record),
        "grades": GRADES.format(about=leading(record) or "the explanations"),
        "audits": [_section(record, section) for section in sections(record)],
        "example_notes": notes(record),
        "examples": samples(record, [row.name for row in board.rows] if board else ()),
        "provenance": _provenance(record),
        "glossary": {**record.summary["explainers"], **glossary(record)},
    }


def _verdict(record: Record) -> dict[str, Any]:
    return {
        "headline": headline(record),
        "grade": standing(record),
        "explainer": leading(record),
        "tally": tally(record),
        "caveats": caveats(record),
        "yardstick": asdict(yardstick(record)),
        "explainers": [asdict(verdict) for verdict in verdicts(record)],
        "table": gridded(verdict_rows(record)),
    }


def _section(record: Record, section: Section) -> dict[str, Any]:
    told, (given, why) = captions(record), grade(record, section.name)
    return {
        "name": section.name,
        "title": section.title,
        "question": section.question,
        "grade": given,
        "why": why,
        "rule": RULES.get(section.name, ""),
        "answer": section.answer,
        "remark": section.remark,
        "reading": section.reading,
        "paper": section.paper,
        "kind": section.kind,
        "kind_meaning": KINDS.get(section.kind, section.kind),
        "figures": [{"name": name, "caption": told.get(name, "")} for name in section.figures],
        "tables": [] if given == NOT_APPLICABLE else section_tables(section),
        "numbers": gridded(section.grid),
    }


def _four_tests(record: Record) -> dict[str, Any] | None:
    block = together(record)
    if block is None:
        return None
    return asdict(block) | {"figures": [{"name": FIGURE, "caption": captions(record).get(FIGURE, "")}]}


def _provenance(record: Record) -> dict[str, Any]:
    return {
        "command": record.summary.get("command"),
        "facts": origins(record),
        "plan": record.summary.get("plan", {}),
    }
