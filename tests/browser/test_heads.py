"""The page of head probes in a real browser, opened from disk as a person would."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import Browser, Page

from assay.probes.probe_page import document
from assay.report.save import save
from tests.browser.noticing import noticed
from tests.report.probed import HOSTILE, synthetic_probe

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZES = [(375, 800), (1280, 900)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("heads") / "probe.html"
    save(document(synthetic_probe()), path)
    return path.as_uri()


def test_it_opens_from_disk_without_a_request_or_an_error(page: Page, address: str) -> None:
    requests, faults = noticed(page)
    page.goto(address)
    page.wait_for_load_state("load")
    assert "relation" in page.get_by_role("heading", level=1).inner_text()
    assert page.locator(".relations tbody tr").count() == 24
    assert page.locator("#drawn svg").count() == 6
    assert page.locator("#drawn text", has_text="<script>").count() == 6  # words are text, twice for each head
    assert page.locator("#drawn figcaption", has_text=HOSTILE).count() == 2
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
        """() => [...document.querySelectorAll('main p, main dd, main figure, main svg, main h1, main .relations td')]
            .filter(part => !part.closest('.scroll'))
            .filter(part => part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML)"""
    )
    assert wide == []
    page.close()


def test_words_of_a_drawing_stay_inside_it_and_off_its_lines(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 800})
    page.goto(address)
    outside = page.locator("#drawn details[open] svg").evaluate_all(
        """drawings => drawings.flatMap(drawing => {
            const box = drawing.getBoundingClientRect();
            const lines = drawing.querySelector('line')?.getBoundingClientRect();
            return [...drawing.querySelectorAll('text')].filter(text => {
                const place = text.getBoundingClientRect();
                const off = place.left < box.left - 1 || place.right > box.right + 1;
                return off || (lines && place.right > lines.left + 1 && place.left < lines.right - 1);
            }).map(text => text.textContent);
        })"""
    )
    assert outside == []
    page.close()


def test_numbers_of_a_relation_are_found_by_keyboard_without_a_script(page: Page, address: str) -> None:
    page.goto(address)
    outer = page.locator("summary", has_text="The same as numbers")
    outer.focus()
    page.keyboard.press("Enter")
    inner = page.locator("#squares details details summary").first
    assert inner.is_visible()
    inner.focus()
    page.keyboard.press("Enter")
    table = page.locator("#squares .matrix table").first
    assert table.is_visible()
    assert table.locator("tbody tr").count() == 6
    assert table.locator("tbody tr").first.locator("td").count() == 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_from_the_ground(browser: Browser, address: str, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(address)
    ratios = page.locator(".ring, .offset, .control, .tick, .wrong").evaluate_all(
        """marks => marks.map(mark => {
            const parts = text => text.match(/[\\d.]+/g).map(Number);
            const light = colour => colour.slice(0, 3).map(part => part / 255)
                .map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
                .reduce((sum, part, place) => sum + part * [.2126, .7152, .0722][place], 0);
            const ground = parts(getComputedStyle(document.body).backgroundColor);
            const [low, high] = [light(ground), light(parts(getComputedStyle(mark).stroke))].sort((x, y) => x - y);
            return (high + .05) / (low + .05);
        })"""
    )
    assert ratios
    assert min(ratios) >= 3
    page.close()
