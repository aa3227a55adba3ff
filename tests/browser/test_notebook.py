"""Explanations and audits as a notebook shows them: a fragment within a page that is not ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from assay.report import notebook
from tests.browser.noticing import noticed
from tests.report.shown import HOSTILE, SENTENCE, hostile, made_up
from tests.report.synthetic import FAITHFUL, synthetic_record

pytestmark = pytest.mark.browser
# what JupyterLab says of tables in its outputs, and of its themes
LAB = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>a notebook</title><style>:root { color-scheme: light dark } body { margin: 8px }
[data-jp-theme-light=false] { background: #111; color: #eee }
[data-jp-theme-light=true] { background: #fff; color: #111 }
.out table { border-collapse: collapse; table-layout: fixed; margin-left: auto; font-size: 12px }
.out td, .out th { text-align: right; padding: .5em; white-space: normal; border: none }
.out tbody tr:nth-child(odd) { background: #f5f5f5 }</style>"""


@pytest.fixture(scope="module")
def fragments() -> str:
    audit = notebook.audit(synthetic_record(count=20, audits=FAITHFUL))
    return "".join([made_up(SENTENCE)._repr_html_(), hostile()._repr_html_(), audit])


@pytest.fixture(scope="module")
def address(fragments: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    path.write_text(f'{LAB}<body data-jp-theme-light="true"><div class="out">{fragments}</div>', encoding="utf-8")
    return path.as_uri()


def test_it_asks_for_nothing_and_what_is_hostile_is_text(page: Page, address: str) -> None:
    requests, faults = noticed(page)
    page.goto(address)
    assert requests == [address]
    assert faults == []
    for word in (HOSTILE[0], HOSTILE[1], "nul␀l", "<b>bold</b>"):
        assert page.get_by_text(word, exact=True).first.is_visible()


@pytest.mark.parametrize("width", [390, 900, 1400])
def test_nothing_scrolls_sideways(browser: Browser, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if width > 390:
        tables = page.locator(".heat").evaluate_all("all => all.map(each => each.getBoundingClientRect().right)")
        assert max(tables) <= width
    page.close()


def test_in_a_narrow_place_each_score_stands_beside_its_word(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(address)
    cell = page.locator(".heat td[title]").first
    after = cell.evaluate("each => getComputedStyle(each, '::after').content")
    assert "the" in after
    assert cell.bounding_box()["height"] > 10
    assert not page.locator(".heat thead").first.is_visible()
    page.close()


@pytest.mark.parametrize("light", ["true", "false"])
def test_letters_stand_out_in_either_theme_whatever_the_system_prefers(
    browser: Browser, address: str, light: str
) -> None:
    page = browser.new_page(color_scheme="dark" if light == "true" else "light")
    page.goto(address)
    page.evaluate(f"document.body.dataset.jpThemeLight = '{light}'")
    strongest = page.locator(".heat td.p8, .heat td.n8")
    assert strongest.count() >= 10
    for contrast in strongest.evaluate_all(CONTRAST):
        assert contrast >= 4.5
    page.close()


def test_a_notebook_s_own_stripes_do_not_colour_a_heatmap(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    grounds = page.locator(".heat tbody tr").evaluate_all(
        "all => all.map(row => getComputedStyle(row).backgroundColor)"
    )
    assert set(grounds) == {"rgba(0, 0, 0, 0)"}
    page.close()


CONTRAST = """all => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = parts => parts.slice(0, 3).map(part => part / 255)
    .map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [.2126, .7152, .0722][place], 0);
  const ground = numbers(getComputedStyle(document.body).backgroundColor);
  return all.map(each => {
    const look = getComputedStyle(each), over = numbers(look.backgroundColor), share = over[3] ?? 1;
    const mixed = ground.slice(0, 3).map((part, place) => over[place] * share + part * (1 - share));
    const [low, high] = [light(mixed), light(numbers(look.color))].sort((one, other) => one - other);
    return (high + .05) / (low + .05);
  });
}"""
