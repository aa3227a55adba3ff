"""The example browser and the cards of a report, used as a person would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from assay.grading.leaderboard import leaderboard
from assay.records import Record
from assay.report.audit import write
from assay.report.examples import browse
from tests.browser.noticing import noticed
from tests.report.hostile import WORDS, hostile
from tests.report.synthetic import FAITHFUL, synthetic_record

pytestmark = pytest.mark.browser
CLASSES = ("<script>alert(3)</script>", "good & <b>fine</b>")


@pytest.fixture(scope="module")
def record() -> Record:
    return synthetic_record(count=90, classes=CLASSES, audits=("agreement", "adversary", *FAITHFUL[1:3]))


@pytest.fixture(scope="module")
def held(record: Record) -> dict[str, Any]:
    board = leaderboard(record)
    assert board is not None
    found = browse(record, [row.name for row in board.rows])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def address(record: Record, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("browsing") / "report.html"
    write(record, path)
    return path.as_uri()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page in a context of its own, without a network."""
    contexts = []

    def opened(url: str, **options: Any) -> Page:
        contexts.append(browser.new_context(offline=True, reduced_motion="reduce", **options))
        page: Page = contexts[-1].new_page()
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


def told(page: Page) -> str:
    return page.locator("[data-part=told]").inner_text()


def chosen(page: Page, name: str) -> Locator:
    return page.get_by_role("combobox", name=name, exact=True)


def short(held: dict[str, Any]) -> dict[str, Any]:
    """The first short example."""
    found: dict[str, Any] = next(each for each in held["examples"] if each["length"] <= held["lengths"][0])
    return found


def cells(page: Page) -> Locator:
    return page.locator("#browser .example[open] td[data-row]")


def test_filters_leave_the_examples_that_fit(visit: Callable[..., Page], address: str, held: dict[str, Any]) -> None:
    page = visit(address)
    examples = held["examples"]

    def counted(fits: Callable[[dict[str, Any]], bool]) -> str:
        return f"{sum(map(fits, examples))} of {len(examples)} examples"

    assert told(page) == counted(lambda example: example["group"] == 0)
    page.get_by_role("button", name="Most disputed").click()
    assert told(page) == counted(lambda example: example["group"] == 2)
    assert held["groups"][2]["rule"] in page.locator("[data-part=rule]").inner_text()
    page.get_by_role("button", name="All", exact=True).click()
    assert told(page) == f"{len(examples)} of {len(examples)} examples"
    chosen(page, "Predicted class").select_option(CLASSES[1])
    assert told(page) == counted(lambda example: example["predicted"] == 1)
    chosen(page, "Prediction").select_option("wrong")
    wrong = counted(lambda example: example["predicted"] == 1 != example["label"])
    assert told(page) == wrong
    for outcome in page.locator("#browser .outcome").all_inner_texts():
        assert outcome.startswith(f"predicted {CLASSES[1]}")
        assert outcome.endswith(f"labelled {CLASSES[0]}")
    chosen(page, "Predicted class").select_option("any")
    chosen(page, "Prediction").select_option("right or wrong")
    chosen(page, "Length").select_option("short")
    assert told(page) == counted(lambda example: example["length"] <= held["lengths"][0])
    page.get_by_label("With the word").fill("THE")
    page.locator("#browser th.hit", has_text="the").first.wait_for(
        state="attached"
    )  # it is drawn when it comes in view
    assert told(page) == counted(
        lambda example: example["length"] <= held["lengths"][0] and "the" in " ".join(example["words"])
    )
    chosen(page, "Length").select_option("any")
    page.get_by_label("With the word").fill("Rare Delight")
    assert told(page) == counted(lambda example: "rare delight" in " ".join(example["words"]))
    page.get_by_label("With the word").fill("no such word")
    assert told(page) == f"0 of {len(examples)} examples"
    assert page.get_by_text("No example fits.").is_visible()


def test_pages_hold_ten_and_lead_on(visit: Callable[..., Page], address: str, held: dict[str, Any]) -> None:
    page = visit(address)
    page.get_by_role("button", name="All", exact=True).click()
    seen = []
    while True:
        openings = page.locator("#browser .opening").all_inner_texts()
        seen += openings
        if page.get_by_role("button", name="Next").is_disabled():
            break
        assert len(openings) == 10
        page.get_by_role("button", name="Next").click()
    assert seen == [example["opening"] for example in held["examples"]]
    page.get_by_role("button", name="Back").click()
    assert page.locator("[data-part=place]").inner_text() == f"71–80 of {len(seen)}"


def test_scales_change_shades_but_not_values(visit: Callable[..., Page], address: str, held: dict[str, Any]) -> None:
    page = visit(f"{address}#examples?group=all&length=short")
    (peaks, steps) = zip(*[(row[0], row[1:]) for row in short(held)["scores"]], strict=True)
    flags = [row.get("flags", False) for row in held["rows"]]
    most = max(peak for peak, flag in zip(peaks, flags, strict=True) if not flag)
    page.locator("#browser").scroll_into_view_if_needed()
    expect(cells(page)).to_have_count(sum(map(len, steps)))
    values = [cell.inner_text() for cell in cells(page).all()]
    for name, full in (("each row", peaks), ("each text", [most] * len(peaks)), ("raw scores", [1.0] * len(peaks))):
        page.get_by_role("button", name=name).click()
        assert page.get_by_role("button", name=name).get_attribute("aria-pressed") == "true"
        for row, (peak, mine) in enumerate(zip(peaks, steps, strict=True)):
            top = peak if flags[row] else full[row]
            expected = [round(8 * min(1, abs(step) / 999 * peak / top) - 1e-9) for step in mine]
            levels = (
                cells(page)
                .and_(page.locator(f"[data-row='{row}']"))
                .evaluate_all("cells => cells.map(cell => Number(cell.dataset.level))")
            )
            assert all(abs(one - other) <= 1 for one, other in zip(levels, expected, strict=True))
            assert abs(sum(levels) - sum(expected)) <= 2
            assert max(levels) == max(expected)
        assert [cell.inner_text() for cell in cells(page).all()] == values
    assert "score of 1" in page.locator("[data-part=legend]").inner_text()


def test_every_word_has_its_value_on_hover_and_on_focus(
    visit: Callable[..., Page], address: str, held: dict[str, Any]
) -> None:
    page = visit(f"{address}#examples?group=all&length=short")
    example, status = short(held), page.locator("#browser .grid-status").first
    names = [row["name"] for row in held["rows"]]
    weakest = min(range(len(example["words"])), key=lambda place: abs(example["scores"][0][1 + place]))
    cell = page.locator(f"#browser td[data-row='0'][data-column='{weakest}']").first
    cell.hover()
    value = cell.inner_text()
    assert float(value) == pytest.approx(
        example["scores"][0][0] * example["scores"][0][1 + weakest] / 999, abs=example["scores"][0][0] / 500
    )
    assert status.inner_text() == f"{example['words'][weakest]} (word {weakest + 1}) · {names[0]}: {value}"
    page.locator("#browser .example[open] summary").focus()
    page.keyboard.press("Tab")
    place = "cell => [Number(cell.dataset.row), Number(cell.dataset.column)]"
    assert page.locator(":focus").evaluate(place) == [0, 0]
    for key, expected in (
        ("ArrowRight", [0, 1]),
        ("ArrowDown", [1, 1]),
        ("ArrowLeft", [1, 0]),
        ("ArrowLeft", [1, 0]),
        ("ArrowUp", [0, 0]),
        ("Control+End", [len(names) - 1, len(example["words"]) - 1]),
        ("Control+Home", [0, 0]),
    ):
        page.keyboard.press(key)
        assert page.locator(":focus").evaluate(place) == expected
        row, column = expected
        assert status.inner_text().startswith(f"{example['words'][column]} (word {column + 1}) · {names[row]}: ")
    assert page.locator("#browser .example[open] td[tabindex='0']").count() == 1


def test_an_address_restores_the_view(visit: Callable[..., Page], address: str) -> None:
    page = visit(address)
    assert page.url == address
    page.get_by_role("button", name="All", exact=True).click()
    chosen(page, "Prediction").select_option("right")
    page.get_by_label("With the word").fill("the & film")
    page.get_by_label("With the word").fill("the")
    page.get_by_role("button", name="raw scores").click()
    page.get_by_role("button", name="Next").click()
    page.locator("#browser .example summary").nth(3).click()
    wanted = [told(page), *page.locator("#browser .opening").all_inner_texts()]
    other = visit(page.url)
    assert [told(other), *other.locator("#browser .opening").all_inner_texts()] == wanted
    assert other.get_by_label("With the word").input_value() == "the"
    assert other.get_by_role("button", name="raw scores").get_attribute("aria-pressed") == "true"
    assert other.locator("#browser .example").nth(3).get_attribute("open") is not None
    assert other.locator("#browser .grid").first.get_attribute("data-scale") == "raw"


@pytest.mark.parametrize("hash", ["#examples?group=%3Cb%3E&class=99&scale=x&page=-4&open=zz", "#examples?%", "#<b>"])
def test_an_address_that_means_nothing_shows_the_usual_view(
    visit: Callable[..., Page], address: str, hash: str
) -> None:
    page = visit("about:blank")
    _, faults = noticed(page)
    page.goto(address + hash)
    assert page.locator("#browser .example").count() == 10
    assert page.get_by_role("button", name="each row").get_attribute("aria-pressed") == "true"
    assert faults == []


def test_hostile_texts_are_shown_as_text(browser: Browser, record: Record, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    write(hostile(record), path)
    assert path.stat().st_size < 2_000_000
    context = browser.new_context(offline=True)
    page = context.new_page()
    requests, faults = noticed(page)
    page.goto(path.as_uri())
    page.get_by_role("button", name="All", exact=True).click()
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    page.get_by_role("button", name="each text").click()
    heads = page.locator("#browser thead th[scope=col]").all_text_contents()
    for word in WORDS[:-1]:
        assert word.replace("\u2028\u2029", "") in heads
    assert "x" * 60 + "…" in heads
    assert page.locator("#browser img, #browser script, .static img, .static script").count() == 0
    assert [url for url in requests if url not in (path.as_uri(), "data:,")] == []
    assert faults == []
    context.close()


def test_a_text_of_2000_words_is_drawn_in_parts_and_reached_to_its_end(
    visit: Callable[..., Page], address: str
) -> None:
    page = visit(address, viewport={"width": 1000, "height": 800})
    rows = [{"name": f"row {place}", "kind": "weights", "remark": ""} for place in range(10)]
    page.evaluate(
        """rows => {
            const words = Array.from({length: 2000}, (_, place) => `word${place}`);
            for (const row of rows) row.scores = words.map((_, place) => place / 2000);
            const element = document.querySelector('#browser .grid');
            assayGrid.show(element, {words, rows}, {scale: 'row'});
        }""",
        rows,
    )
    assert cells(page).count() < 10_000
    page.locator("#browser .example[open] summary").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Control+End")
    status = page.locator("#browser .grid-status").first
    assert status.inner_text() == "word1999 (word 2000) · row 9: 1"
    page.keyboard.press("PageUp")
    assert "row 9" in status.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000


def test_words_written_from_the_right_stand_from_the_right(visit: Callable[..., Page], address: str) -> None:
    page = visit(address)
    page.evaluate(
        """words => assayGrid.show(document.querySelector('#browser .grid'),
            {words, rows: [{name: 'attention', kind: 'weights', remark: '', scores: [.1, .2, .7]}]}, {scale: 'row'})""",
        ["سلام", "دنیا", "خوب"],
    )
    first, second = (cells(page).nth(place).bounding_box() for place in (0, 1))
    assert first and second
    assert first["x"] > second["x"]
    cells(page).first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.locator(":focus").get_attribute("data-column") == "1"


def test_the_columns_fit_again_when_the_window_shrinks(visit: Callable[..., Page], address: str) -> None:
    page = visit(address, viewport={"width": 1400, "height": 900})
    blocks = page.locator("#browser .example[open] .grid-block")
    before = blocks.count()
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(f"document.querySelectorAll('#browser .example[open] .grid-block').length > {before}")
    wide = page.locator("#browser .example[open] .grid table").evaluate_all(
        "tables => tables.filter(table => table.getBoundingClientRect().right > innerWidth).length"
    )
    assert wide == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_cards_open_by_link_and_all_together(visit: Callable[..., Page], address: str, record: Record) -> None:
    page = visit(f"{address}#audit-2")
    cards = page.locator("details.card")
    assert cards.count() == len(record.summary["audits"])
    assert page.locator("details.card[open]").count() == 1
    assert page.locator("#audit-2[open]").count() == 1
    page.get_by_role("button", name="Open all cards").click()
    assert page.locator("details.card[open]").count() == cards.count()
    page.get_by_role("button", name="Close all cards").click()
    assert page.locator("details.card[open]").count() == 0


def test_paper_gets_open_cards_and_the_examples_as_text(visit: Callable[..., Page], address: str) -> None:
    page = visit(address)
    page.emulate_media(media="print")
    assert not page.locator("#browser").is_visible()
    assert page.locator(".static").is_visible()
    assert page.locator("#audit-1 figure").first.is_visible()
    assert page.locator(".static .heat").last.is_visible()
    assert not page.locator("#audit-1 .inside > details div.scroll").is_visible()  # hundreds of rows that lie in a file
    assert not page.get_by_role("navigation").is_visible()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_no_serious_fault_of_access_is_found(visit: Callable[..., Page], address: str, scheme: str, width: int) -> None:
    size = {"width": width, "height": 900}
    page = visit(address, color_scheme=scheme, viewport=size, bypass_csp=True)
    page.get_by_role("button", name="Open all cards").click()
    found = Axe().run(page).response["violations"]
    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    assert serious == [], json.dumps(
        [(fault["id"], [node["html"][:200] for node in fault["nodes"]][:4]) for fault in serious], indent=1
    )
