"""The command line, called as a person would."""

from __future__ import annotations

import sys

import pytest

from assay import cli


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit code and what was printed: as an answer, and aside."""
    monkeypatch.setattr(sys, "argv", ["assay", *words])
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err
