"""The pages of runs in a real browser: browse, filter, open, compare, plots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from assay.serve.library import Library, Run
from tests.browser.noticing import noticed
from tests.report.synthetic import failing, synthetic_record
from tests.serving import served

pytestmark = pytest.mark.browser
HOSTILE = "<script>alert(1)</script>\u202e\"'><img src=x onerror=alert(2)> ../../etc/passwd " + "w" * 90
SIZES = [(390, 844), (1400, 900)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs, one of which passes and one of which means harm, and a damaged one."""
    home = tmp_path_factory.mktemp("library")
    good = synthetic_record(count=30)
    record = failing(good)
    summary = record.summary
    evil = {"corpus": summary["corpus"] | {"name": HOSTILE, "classes": [HOSTILE, "other"]}, "command": HOSTILE}
    evil |= {"model": summary["model"] | {"description": HOSTILE}, "created": "2025-01-01"}
    evil["findings"] = [row for row in summary["findings"] if row["group"] == "all"]
    films = {"corpus": summary["corpus"] | {"name": "films"}, "created": "2026-02-02T00:00:00Z"}
    replace(record, summary=summary | evil).write(home / "<img src=x onerror=alert(3)>")
    replace(good, summary=good.summary | films).write(home / "films")
    record.write(home / "negation" / "first")
    record.write(home / "negation" / "second")
    (home / "broken").mkdir()
    (home / "broken" / "summary.json").write_text("{}")
    return home


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served({}, folder) as place:
        yield place


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Run]:
    return {run.name: run for run in Library([folder]).runs()}


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param)
    yield context.new_page()
    context.close()


@pytest.fixture
def scripted(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page with scripts, and what goes wrong in it."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    _, faults = noticed(page)
    yield page, faults
    assert faults == []
    page.close()


def names(page: Page) -> list[str]:
    return page.locator(".runs tbody th a").all_inner_texts()


def scripts(page: Page) -> bool:
    """Whether scripts run in the page: one of them disables what cannot be done yet."""
    return bool(page.get_by_role("button", name="Compare").is_disabled())


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_runs_are_filtered_with_a_script_and_without(page: Page, address: str) -> None:
    page.goto(f"{address}/runs")
    assert len(names(page)) == 4
    page.get_by_label("Search").fill("films")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/runs?*search=films*")
    assert names(page) == ["films"]
    page.get_by_role("link", name="show all").click()
    page.wait_for_url("**/runs")
    assert len(names(page)) == 4
    page.locator("select[name=grade]").select_option("pass")
    if not scripts(page):  # with one, choosing is enough
        page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/runs?*grade=pass*")
    assert names(page) == ["films"]
    page.reload()
    assert names(page) == ["films"]
    assert page.locator("select[name=grade]").input_value() == "pass"


def test_two_runs_are_chosen_and_compared(page: Page, address: str) -> None:
    page.goto(f"{address}/runs")
    page.get_by_label("Choose films").check()
    page.get_by_label("Choose negation/first").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?*")
    assert len(asked(page)["run"]) == 2
    told = page.locator("main").inner_text()
    assert "films" in told and "negation/first" in told
    assert page.locator("main").evaluate("part => getComputedStyle(part).maxWidth") != "none"


def test_choices_live_in_the_address_and_outlast_a_filter(
    scripted: tuple[Page, list[str]], address: str, runs: dict[str, Run]
) -> None:
    page, _ = scripted
    page.goto(f"{address}/runs")
    compare, plots = (page.get_by_role("button", name=name) for name in ("Compare", "Plots"))
    expect(compare).to_be_disabled()
    expect(plots).to_be_disabled()
    page.get_by_label("Choose films").check()
    expect(plots).to_be_enabled()
    expect(compare).to_be_disabled()
    assert asked(page) == {"run": [runs["films"].id]}
    page.reload()
    assert page.get_by_label("Choose films").is_checked()
    page.locator("select[name=corpus]").select_option("planted:negation")
    page.wait_for_url("**/runs?corpus=*")
    assert sorted(names(page)) == ["negation/first", "negation/second"]
    assert page.locator(".elsewhere label").all_inner_texts() == ["films"]
    page.get_by_label("Choose negation/second").check()
    expect(page.locator(".chosen")).to_have_text("2 chosen")
    plots.click()
    page.wait_for_url("**/plots?*")
    assert asked(page) == {"run": [runs["films"].id, runs["negation/second"].id]}
    page.go_back()
    assert page.get_by_label("Choose negation/second").is_checked()
    expect(compare).to_be_enabled()


def test_a_run_is_opened_and_its_report_read(
    scripted: tuple[Page, list[str]], address: str, runs: dict[str, Run]
) -> None:
    page, _ = scripted
    page.goto(f"{address}/runs")
    page.get_by_role("link", name="negation/first").click()
    page.wait_for_url(re.compile("/runs/[0-9a-f]{16}$"))
    lead = runs["negation/first"].headline.split(":")[0]
    assert lead in page.get_by_role("heading", level=1).inner_text()
    shown = page.locator("figure.shown img")
    assert shown.evaluate("image => image.complete && image.naturalWidth") > 100
    with page.expect_download() as loading:
        page.get_by_role("link", name="summary.json").click()
    assert loading.value.suggested_filename == f"assay-{runs['negation/first'].id}-summary.json"
    page.get_by_role("link", name="Open the full report").click()
    page.wait_for_url("**/report")
    assert lead in page.get_by_role("heading", level=1).inner_text()
    assert page.locator("figure svg").count() > 3
    page.go_back()
    page.wait_for_url(re.compile("/runs/[0-9a-f]{16}$"))
    assert page.url.endswith(runs["negation/first"].id)


def test_a_command_is_copied(browser: Browser, address: str, runs: dict[str, Run]) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/runs/{runs['films'].id}")
    page.get_by_role("button", name="Copy this command").first.click()
    expect(page.locator(".command button").first).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"assay report {runs['films'].folder}"
    context.close()


def test_figures_stand_side_by_side_and_are_leafed_through(page: Page, address: str, runs: dict[str, Run]) -> None:
    chosen = [runs["films"].id, runs["negation/first"].id]
    page.goto(f"{address}/plots?figure=permutation&run={chosen[0]}&run={chosen[1]}")
    assert page.locator(".multiples figure").count() == 2
    page.get_by_role("link", name="Next figure").click()
    page.wait_for_url("**figure=adversary&*")
    assert asked(page)["run"] == chosen
    page.get_by_label("Figure").select_option("verdict")
    page.get_by_role("checkbox", name="films").uncheck()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**figure=verdict*")
    assert asked(page) == {"figure": ["verdict"], "run": [chosen[1]]}
    image = page.locator(".multiples img")
    assert image.count() == 1
    page.wait_for_load_state("networkidle")
    box = image.bounding_box()
    assert box and box["height"] > 60
    assert "explainer" in (image.get_attribute("alt") or "")


def test_figures_follow_dark_and_light(browser: Browser, address: str, runs: dict[str, Run]) -> None:
    inks = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(f"{address}/runs/{runs['films'].id}/figures/adversary.svg")
        inks[scheme] = page.locator("svg text").first.evaluate("text => getComputedStyle(text).fill")
        page.close()
    assert inks == {"light": "rgb(38, 36, 46)", "dark": "rgb(233, 231, 238)"}


VIEWS = ["/runs", "/runs?search=nothing", "/runs/{0}", "/plots?run={0}&run={1}&figure=adversary", "/plots"]


@pytest.mark.parametrize(("size", "scheme"), [(SIZES[0], "light"), (SIZES[1], "dark")], ids=["phone", "desk"])
def test_pages_fit_and_serve_everyone(
    browser: Browser, address: str, runs: dict[str, Run], size: tuple[int, int], scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
    )
    page = context.new_page()
    _, faults = noticed(page)
    evil = runs["<img src=x onerror=alert(3)>"].id
    for view in VIEWS:
        page.goto(address + view.format(evil, runs["films"].id))
        page.wait_for_load_state("networkidle")
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0], view
        wide = page.evaluate(
            """() => [...document.querySelectorAll('main *')].filter(part => !part.closest('thead, .scroll, .unseen')
                && part.getBoundingClientRect().right > innerWidth + 1).map(part => part.outerHTML.slice(0, 200))"""
        )
        assert wide == [], view
        found = Axe().run(page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], view
    assert faults == []
    context.close()


def test_hostile_runs_do_nothing(scripted: tuple[Page, list[str]], address: str, runs: dict[str, Run]) -> None:
    page, _ = scripted
    requests, _ = noticed(page)
    evil, films = runs["<img src=x onerror=alert(3)>"].id, runs["films"].id
    for view in (*VIEWS, "/runs/{0}/report", "/compare?run={0}&run={1}"):
        page.goto(address + view.format(evil, films))
        page.wait_for_load_state("networkidle")
    page.goto(f"{address}/runs")
    assert "<img src=x onerror=alert(3)>" in names(page)
    assert HOSTILE[:40] in page.locator(".runs").inner_text()
    assert [url for url in requests if not re.match(rf"{address}/|data:", url)] == []


def test_everything_can_be_done_with_keys(scripted: tuple[Page, list[str]], address: str) -> None:
    page, _ = scripted
    page.goto(f"{address}/runs")
    page.get_by_label("Search").focus()
    page.keyboard.type("negation")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?search=negation")
    first = page.locator(".runs input").first
    first.focus()
    page.keyboard.press("Space")
    assert first.is_checked()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.runs th') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/runs/[0-9a-f]{16}$"))
