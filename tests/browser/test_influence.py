"""The page on training texts in a real browser, opened from disk as a person would."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from assay.influence.page import document
from assay.report.save import save
from tests.browser.noticing import noticed
from tests.report.influential import suspected, traced

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=["text", "mislabelled"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("influence") / "influence.html"
    save(document({"text": traced, "mislabelled": suspected}[request.param]()), path)
    return path.as_uri()


def test_it_opens_from_disk_without_a_request_or_an_error(page: Page, address: str) -> None:
    requests, faults = noticed(page)
    page.goto(address)
    page.wait_for_load_state("load")
    assert page.locator(".trained tbody tr").count() >= 2
    assert page.locator(".trained tbody :is(th, td)", has_text="<script>").count() >= 2
    assert [url for url in requests if url not in (address, "data:,")] == []
    assert faults == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_it_fits_and_can_be_read_by_everybody(browser: Browser, address: str, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    page.close()
