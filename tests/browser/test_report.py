"""The report in a real browser, opened from disk as a person would."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from assay.records import Record
from assay.report.page import write
from assay.report.verdicts import headline
from tests.report.synthetic import synthetic_record

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = [(375, 800), (1280, 900)]


@pytest.fixture(scope="module")
def record() -> Record:
    hostile = (
        "<script>alert(3)</script>",
        "a class name that is far too long to fit into a legend or a line",
    )
    return synthetic_record(count=40, classes=hostile, audits=("agreement", "permutation", "adversary", "truth"))


@pytest.fixture(scope="module")
def address(record: Record, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(record, path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param, offline=True)
    yield context.new_page()
    context.close()


def test_it_opens_from_disk_without_a_request_or_an_error(page: Page, address: str, record: Record) -> None:
    requests: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(address)
    page.wait_for_load_state("load")
    lead, _, because = headline(record).partition(": ")
    title = page.get_by_role("heading", level=1)
    assert title.is_visible()
    assert lead in title.inner_text()
    assert because.replace(" %", "\u00a0%") in title.inner_text()
    assert page.locator("figure svg").count() == 7
    assert [url for url in requests if url not in (address, "data:,")] == []
    assert faults == []


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_at_the_side(browser: Browser, address: str, size: tuple[int, int], scheme: str) -> None:
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        """() => [...document.querySelectorAll('main p, main dd, main figure, main svg, main h1, main .badge')]
            .filter(part => part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML)"""
    )
    assert wide == []
    page.close()


def test_details_open_without_a_script(page: Page, address: str) -> None:
    page.goto(address)
    table = page.locator("#audit-1 .scroll")
    assert not table.is_visible()
    page.locator("#audit-1 summary").click()
    assert table.is_visible()
    example = page.locator(".example").nth(1)
    assert not example.locator(".heat").first.is_visible()
    example.locator("summary").click()
    assert example.locator(".heat").first.is_visible()


def test_a_word_shows_its_score_on_focus(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    word = page.locator(".example[open] mark").first
    page.locator(".example[open] summary").focus()
    page.keyboard.press("Tab")
    assert word.evaluate("word => word === document.activeElement")
    shown = word.evaluate("word => getComputedStyle(word, '::after').content")
    assert shown.strip('"') == word.get_attribute("title")
    page.close()


def test_dark_and_light_differ_and_both_can_be_read(browser: Browser, address: str) -> None:
    inks = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(address)
        ground, ink, label = (
            page.locator(where).first.evaluate(f"part => getComputedStyle(part).{what}")
            for where, what in (("body", "backgroundColor"), ("body", "color"), ("figure svg text", "fill"))
        )
        inks[scheme] = (ground, ink)
        assert label == ink
        page.close()
    assert inks["light"] != inks["dark"]
