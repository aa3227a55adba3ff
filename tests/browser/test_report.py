"""The report in a real browser, opened from disk as a person would."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from assay.audits.minimal_set import MinimalSet
from assay.records import Record
from assay.report.audit import write
from assay.report.outcome import outcome
from assay.report.tables import flip_tables
from tests.browser.noticing import noticed
from tests.report.synthetic import FAITHFUL, MANY, synthetic_record, worded

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
SIZES = [(390, 800), (1400, 900)]


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
def crowd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of thirty explainers and every audit that planted evidence allows."""
    path = tmp_path_factory.mktemp("crowd") / "report.html"
    write(synthetic_record(count=16, explainers=MANY, audits=FAITHFUL), path)
    return path.as_uri()


@pytest.fixture(scope="module")
def asked() -> Record:
    """A record of pairs, with long queries and all audits that erase attention."""
    made = synthetic_record(count=40, audits=("agreement", "adversary", "single_weight", "minimal_set"))
    queries = ["Who <b>sings</b>?", "w" * 400, "سلام دنیا", "a long question " * 40] * 10
    place = made.examples.column_names.index("query")
    return replace(worded(made, "paired", "words"), examples=made.examples.set_column(place, "query", [queries]))


@pytest.fixture(scope="module")
def pairs(asked: Record, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pairs") / "report.html"
    write(asked, path)
    return path.as_uri()


def opened(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")


def test_it_opens_from_disk_without_a_request_or_an_error(page: Page, address: str, record: Record) -> None:
    requests, faults = noticed(page)
    page.goto(address)
    page.wait_for_load_state("load")
    lead, _, because = outcome(record).headline.partition(": ")
    title = page.get_by_role("heading", level=1)
    assert title.is_visible()
    assert lead in title.inner_text()
    assert because.replace(" %", "\u00a0%") in title.inner_text()
    assert page.locator("figure svg").count() == 7
    assert [url for url in requests if url not in (address, "data:,")] == []
    assert faults == []


@pytest.mark.parametrize("which", ["address", "crowd", "pairs"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_at_the_side(
    browser: Browser, which: str, size: tuple[int, int], scheme: str, request: pytest.FixtureRequest
) -> None:
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(request.getfixturevalue(which))
    opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        """() => [...document.querySelectorAll('main p, main dd, main figure, main svg, main h1, main .badge')]
            .filter(part => part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML)"""
    )
    assert wide == []
    page.close()


@pytest.mark.parametrize("part", [".board", ".matrix .scroll"])
def test_names_stay_in_sight_while_a_table_scrolls_in_its_box(browser: Browser, crowd: str, part: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 800})
    page.goto(crowd)
    opened(page)
    box = page.locator(part).first
    name, number = box.locator("tbody th").first, box.locator("tbody td").nth(3)
    before, started = name.bounding_box(), number.bounding_box()
    assert box.evaluate("part => part.scrollWidth > part.clientWidth")
    box.evaluate("part => { part.scrollLeft = 120 }")
    after, ended = name.bounding_box(), number.bounding_box()
    assert before and after and started and ended
    assert after["x"] == pytest.approx(before["x"], abs=1)
    assert ended["x"] == pytest.approx(started["x"] - 120, abs=1)
    assert 100 < after["width"] < 375 / 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.close()


def test_the_whole_leaderboard_is_in_sight_on_a_desk(browser: Browser, crowd: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(crowd)
    assert page.locator(".board tbody tr").count() == 31
    assert page.locator(".board").evaluate("part => part.scrollWidth <= part.clientWidth")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_can_be_read_on_the_darkest_shade_of_a_square(browser: Browser, crowd: str, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(crowd)
    ratios = page.locator(".matrix .p8, .matrix .p4, .matrix .p1").evaluate_all(
        """cells => cells.map(cell => {
            const parts = text => text.match(/[\\d.]+/g).map(Number);
            const [r, g, b, a] = parts(getComputedStyle(cell).backgroundColor);
            const ground = parts(getComputedStyle(cell.closest('.card')).backgroundColor);
            const mixed = [r, g, b].map((part, place) => part * a + ground[place] * (1 - a));
            const light = colour => colour.slice(0, 3).map(part => part / 255)
                .map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
                .reduce((sum, part, place) => sum + part * [.2126, .7152, .0722][place], 0);
            const [low, high] = [light(mixed), light(parts(getComputedStyle(cell).color))].sort((x, y) => x - y);
            return (high + .05) / (low + .05);
        })"""
    )
    assert ratios
    assert min(ratios) >= 4.5
    page.close()


def test_erased_attention_can_be_read_without_a_script(page: Page, pairs: str, asked: Record) -> None:
    page.goto(pairs)
    single = page.locator("details.card", has=page.get_by_role("heading", name="most attended word matter"))
    sets = page.locator("details.card", has=page.get_by_role("heading", name="words must go"))
    for card in (single, sets):
        card.locator("> summary").click()
    assert single.locator("svg").count() == sets.locator("svg").count() == 2
    for table, flips in zip(single.locator(".flips").all(), flip_tables(asked, "single_weight"), strict=True):
        assert table.is_visible()
        for told in (flips.both, flips.top_only, flips.other_only, flips.neither):
            assert told.replace(" %", "\u00a0%") in table.inner_text()
    assert [
        row.inner_text().split("\t")[0] for row in sets.locator("table.scroll").first.locator("tbody tr").all()
    ] == [row[0] for row in MinimalSet().conclude(asked).tables[0].rows]
    scripted = page.locator("#browser").is_visible()
    assert page.locator(".static").is_visible() is not scripted
    example = page.locator("#browser .example[open]" if scripted else ".static .example[open]")
    query, text = example.locator(".query"), example.locator(".grid" if scripted else ".heat").first
    assert query.is_visible()
    above, below = query.bounding_box(), text.bounding_box()
    assert above and below
    assert above["y"] + above["height"] <= below["y"]
    assert example.get_by_text("smallest set that flips the decision").first.is_visible()


def test_rankings_stay_in_sight_while_their_table_scrolls_on_a_phone(browser: Browser, pairs: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 800})
    page.goto(pairs)
    opened(page)
    box = page.locator("div.scroll", has=page.locator("table.scroll")).first
    name = box.locator("tbody th").first
    before = name.bounding_box()
    assert box.evaluate("part => part.scrollWidth > part.clientWidth")
    box.evaluate("part => { part.scrollLeft = 90 }")
    after = name.bounding_box()
    assert before and after
    assert after["x"] == pytest.approx(before["x"], abs=1)
    page.close()


def test_details_open_without_a_script(page: Page, address: str) -> None:
    page.goto(address)
    card = page.locator("#audit-1")
    figure, table = card.locator("figure").first, card.locator("details div.scroll")
    assert not figure.is_visible()
    card.locator("> summary").click()
    assert figure.is_visible()
    assert not table.is_visible()
    card.locator("details > summary").click()
    assert table.is_visible()
    scripted = page.locator("#browser").is_visible()
    example = page.locator("#browser .example" if scripted else ".static .example").nth(1)
    inside = example.locator(".grid" if scripted else ".heat").first
    assert not inside.is_visible()
    example.locator("summary").press("Enter")  # a grid above it may still move it away from under a pointer
    expect(inside).to_be_visible()


def test_a_word_shows_its_score_on_focus_without_a_script(browser: Browser, address: str) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    word = page.locator(".static .example[open] mark").first
    page.locator(".static .example[open] summary").focus()
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
