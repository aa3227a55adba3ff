"""The comparison of runs in a real browser, opened from disk as a person would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page

from assay.records import Record
from assay.report.compare import write
from tests.browser.noticing import noticed
from tests.report.synthetic import synthetic_record

pytestmark = pytest.mark.browser
SIZES = [(390, 844), (1400, 900)]
HOSTILE = '<img src=x onerror=alert(1)> <script>alert("x")</script> سلام دنیا \u202eesrever'
LONG = "a-run-with-a-name-that-nobody-would-choose-" * 4


def moved(record: Record, column: str, by: float) -> Record:
    """The record with other numbers in one column, and a name of its corpus that is no name."""
    place = record.instances.column_names.index(column)
    draw = np.random.default_rng(3)
    values = [None if v is None else v + by + draw.normal(0, 0.01) for v in record.instances[column].to_pylist()]
    summary = record.summary | {"corpus": record.summary["corpus"] | {"name": HOSTILE}, "command": HOSTILE}
    return replace(record, summary=summary, instances=record.instances.set_column(place, column, pa.array(values)))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    audits = ("agreement", "permutation", "adversary", "truth", "erasure")
    first = synthetic_record(count=60, audits=audits)
    runs = {HOSTILE: moved(first, "auprc:gradient", -0.5), LONG: first, "c": moved(first, "flip:attention", 0.5)}
    path = tmp_path_factory.mktemp("runs") / "comparison.html"
    write(runs, path)
    return path.as_uri()


def test_it_opens_from_disk_without_a_request_or_an_error(page: Page, address: str) -> None:
    requests, faults = noticed(page)
    page.goto(address)
    page.wait_for_load_state("load")
    assert "differences between the runs exceed noise" in page.get_by_role("heading", level=1).inner_text()
    assert page.locator(".runs tbody tr").count() == 3
    assert page.locator(".panels svg").count() == 5  # random scores are the tick in each
    assert page.locator("img, main script").count() == 0
    assert page.locator("th", has_text='<script>alert("x")</script>').count() > 0
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
        """() => [...document.querySelectorAll('main p, main li, main dd, main svg, main h1, main th, main td')]
            .filter(part => !part.closest('.scroll') && !part.closest('thead'))
            .filter(part => part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML)"""
    )
    assert wide == []
    page.close()


def test_other_measures_open_by_keyboard_without_a_script(page: Page, address: str) -> None:
    page.goto(address)
    summary = page.locator("#explainers summary", has_text="flip")
    assert "differences exceed noise" in summary.inner_text()
    summary.focus()
    page.keyboard.press("Enter")
    table = page.locator("#explainers details[open] table")
    assert table.is_visible()
    marked = [text.replace("\u00a0", " ") for text in table.locator("td.exceeds .remark").all_inner_texts()]
    assert any(text.startswith("▲ above") for text in marked)
    assert any(text.startswith("▼ below") for text in marked)


def test_the_name_of_an_explainer_stays_in_sight_while_runs_are_scrolled(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address)
    region = page.get_by_role("region", name="AUPRC of each explainer in each run")
    region.focus()
    before = region.locator("tbody th").first.bounding_box()
    region.evaluate("part => part.scrollLeft = 200")
    assert region.evaluate("part => part.scrollLeft") > 100
    after = region.locator("tbody th").first.bounding_box()
    assert before is not None and after is not None
    assert after["x"] == pytest.approx(before["x"], abs=1)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_and_grades_stand_out_from_their_ground(browser: Browser, address: str, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(address)
    ratios = page.locator("td.exceeds .remark, td.exceeds .ends, td.exceeds .badge").evaluate_all(
        """marks => marks.filter(mark => mark.offsetParent).map(mark => {
            const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
            const paint = (...colours) => {
                colours.forEach(colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); });
                return [...canvas.getImageData(0, 0, 1, 1).data];
            };
            const light = colour => colour.slice(0, 3).map(part => part / 255)
                .map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
                .reduce((sum, part, place) => sum + part * [.2126, .7152, .0722][place], 0);
            const ground = getComputedStyle(document.body).backgroundColor;
            const cell = getComputedStyle(mark.closest('td')).backgroundColor;
            const ink = paint(getComputedStyle(mark).color);
            const [low, high] = [light(paint(ground, cell)), light(ink)].sort((x, y) => x - y);
            return (high + .05) / (low + .05);
        })"""
    )
    assert ratios
    assert min(ratios) >= 4.5
    page.close()
