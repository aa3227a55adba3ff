"""Findings that hold a number."""

from __future__ import annotations

from assay.records import Finding, Record


def known(record: Record, audit: str, measure: str, subject: str = "attention") -> Finding | None:
    """The finding over all texts, or None where no text has a number."""
    found = record.finding(audit, subject, measure)
    return found if found is not None and found.n > 0 else None
