"""The whole report as plain data, from which every form but the page is written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from assay.grading.grade import CAPTION, yardstick
from assay.grading.leaderboard import leaderboard
from assay.grading.verdicts import leading
from assay.lookup import NOT_APPLICABLE
from assay.records import Record
from assay.report.examples import notes
from assay.report.facts import KINDS, facts, glossary, left_out, origins
from assay.report.forms.samples import samples
from assay.report.forms.tabled import board_data, board_table, gridded, section_tables
from assay.report.outcome import Outcome, outcome, together
from assay.report.sections import Section, captions, sections
from assay.report.tables import own_rows, verdict_rows

SCHEMA, VERSION = "assay.report", 1
GRADES = (
    "Each of the audits below is one published question that was put to the model. Its grade is about {about}, by the "
    "rule that stands with it; where no rule can be defended, it is measured only."
)


def document(record: Record) -> dict[str, Any]:
    """What the page shows, in its order: verdict, leaderboard, what was audited, audits, examples, provenance."""
    board, found = leaderboard(record), outcome(record)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": f"Audit of {record.summary['corpus']['name']}",
        "made_by": f"assay {record.summary.get('assay', '')}".strip(),
        "created": record.summary.get("created"),
        "verdict": _verdict(record, found),
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


def _verdict(record: Record, found: Outcome) -> dict[str, Any]:
    return {
        "headline": found.headline,
        "grade": found.grade,
        "explainer": found.explainer,
        "graded": found.graded,
        "tally": found.tally,
        "caveats": list(found.caveats),
        "yardstick": asdict(yardstick(record)),
        "caption": CAPTION,
        "explainers": [asdict(verdict) for verdict in found.verdicts],
        "table": gridded(verdict_rows(record)),
    }


def _section(record: Record, section: Section) -> dict[str, Any]:
    told = captions(record)
    return {
        "name": section.name,
        "title": section.title,
        "question": section.question,
        "grade": section.grade,
        "why": section.why,
        "rule": section.rule,
        "answer": section.answer,
        "remark": section.remark,
        "reading": section.reading,
        "paper": section.paper,
        "kind": section.kind,
        "kind_meaning": KINDS.get(section.kind, section.kind),
        "figures": [{"name": name, "caption": told.get(name, "")} for name in section.figures],
        "tables": [] if section.grade == NOT_APPLICABLE else section_tables(section),
        "numbers": gridded(section.grid),
    }


def _four_tests(record: Record) -> dict[str, Any] | None:
    block = together(record)
    if block is None:
        return None
    told = {key: value for key, value in block.items() if key != "figure"}
    return told | {"figures": [{"name": block["figure"], "caption": captions(record).get(block["figure"], "")}]}


def _provenance(record: Record) -> dict[str, Any]:
    return {
        "command": record.summary.get("command"),
        "facts": origins(record),
        "plan": record.summary.get("plan", {}),
    }
