"""A headless Chromium without a network, with scripts and without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.drawn import drawn_once

__all__ = ["drawn_once"]

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PATIENCE = 120_000  # milliseconds that a machine with other work may take

expect.set_options(timeout=PATIENCE)


_opened = ExitStack()
_running: list[Browser] = []


@pytest.fixture(scope="module")
def browser() -> Browser:
    """One for all modules that follow each other."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    if not _running:
        playwright = _opened.enter_context(sync_playwright())
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        _opened.callback(chromium.close)
        _running.append(chromium)
    return _running[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """It ends before tests of other folders, which may run an event loop of their own."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _running.clear()
        _opened.close()


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param, offline=True)
    yield context.new_page()
    context.close()
