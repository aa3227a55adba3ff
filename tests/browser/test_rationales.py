"""The page on selections in a real browser, opened from disk as a person would."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from assay.report.rationales.page import write
from tests.browser.noticing import noticed
from tests.report.selecting import selections

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rationales") / "rationales.html"
    write(selections(collapse=["The selector has settled on one word."]), path)
    return path.as_uri()


def test_it_opens_from_disk_without_a_request_or_an_error(page: Page, address: str) -> None:
    requests, faults = noticed(page)
    page.goto(address)
    page.wait_for_load_state("load")
    assert page.locator(".measured tbody tr").count() == 8
    assert page.locator(".text").count() == 4
    assert page.locator(".text", has_text="<script>").count() >= 3
    assert page.locator(".caveat").count() == 1
    assert [url for url in requests if url not in (address, "data:,")] == []
    assert faults == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (390, "light"), (1400, "dark"), (1400, "light")])
def test_it_fits_and_can_be_read_by_everybody(browser: Browser, address: str, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.close()
