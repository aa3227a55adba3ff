"""The page on selections in a real browser, opened from disk as a person would."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from assay.rationales.selection_page import document
from assay.report.save import save
from tests.browser.noticing import noticed
from tests.report.selecting import aligned, phrased, selections

pytestmark = pytest.mark.browser


PAGES = {
    "usual": lambda: selections(collapse=["The selector has settled on one word."]),
    "aligned": aligned,
    "phrases": phrased,
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("rationales")
    for name, made in PAGES.items():
        save(document(made()), folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in PAGES}


@pytest.mark.parametrize(("kind", "texts"), [("usual", 4), ("aligned", 3), ("phrases", 2)])
def test_it_opens_from_disk_without_a_request_or_an_error(
    page: Page, addresses: dict[str, str], kind: str, texts: int
) -> None:
    requests, faults = noticed(page)
    page.goto(addresses[kind])
    page.wait_for_load_state("load")
    assert page.locator(".measured tbody tr").count() == 9
    assert page.locator(".text").count() == texts
    assert page.locator(".text", has_text="<script>").count() >= texts - 1
    assert page.locator(".caveat").count() == (0 if kind == "aligned" else 1)
    assert [url for url in requests if url not in (addresses[kind], "data:,")] == []
    assert faults == []


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (390, "light"), (1400, "dark"), (1400, "light")])
def test_it_fits_and_can_be_read_by_everybody(
    browser: Browser, addresses: dict[str, str], kind: str, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(addresses[kind])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.close()
