"""Figures of tests that do not test drawing: the same one is drawn once a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest
import vl_convert

DRAW = vl_convert.vegalite_to_svg


@cache
def _drawn(specification: str) -> str:
    drawing: str = DRAW(json.loads(specification))
    return drawing


@pytest.fixture(scope="module", autouse=True)
def drawn_once() -> Iterator[None]:
    """For the tests of a folder, whose conftest imports it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", lambda figure: _drawn(json.dumps(figure)))
        yield


@pytest.fixture
def drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each drawing is one of its own, for tests that compare two."""
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", DRAW)
