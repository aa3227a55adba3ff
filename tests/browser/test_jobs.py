"""The page of jobs in a real browser: a file is sent in, watched, cancelled, and found again after a restart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from assay.serve import job_runner, jobs
from tests.browser.conftest import PATIENCE
from tests.browser.noticing import noticed
from tests.serve import working
from tests.serve.working import FAILS, GOES_WELL, WAITS
from tests.serving import served

pytestmark = pytest.mark.browser
FAKE = (sys.executable, "-S", str(Path(working.__file__)))
NAME = "<img src=x onerror=alert(1)> \u202efilms.csv"


@pytest.fixture
def page(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setattr(jobs, "LONGEST", 1.0)  # a server that stops waits for its streams; the page asks for new ones
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def table(texts: int = 60) -> bytes:
    """A csv file in which one word tells the class."""
    words, classes = ("dull", "fine"), ("=1+1", "<b>yes</b>")
    rows = [f"{i},text number {i % 17} is {words[i % 2]} and has row {i},{classes[i % 2]}" for i in range(texts)]
    return "\n".join(["id,review,sentiment", *rows]).encode()


def choose(page: Page, body: bytes, name: str = NAME) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": body})


def start(page: Page, seed: int) -> None:
    page.fill("#seed", str(seed))
    page.click("#start")


def test_a_job_is_watched_and_cancelled_and_outlives_page_and_server(page, tmp_path, monkeypatch):
    monkeypatch.setattr(job_runner, "PROGRAM", FAKE)
    with served({}, tmp_path) as address:
        requests, faults = noticed(page)
        page.goto(f"{address}/jobs")
        choose(page, table())
        expect(page.locator("#text-column")).to_have_value("review")
        expect(page.locator("#label-column")).to_have_value("sentiment")
        expect(page.locator("#classes")).to_have_text("2 classes: =1+1 (30), <b>yes</b> (30)")
        start(page, WAITS)
        job = page.locator(".job")
        expect(job.locator(".state")).to_have_text("running")
        expect(job.locator(".words")).to_have_text("auditing 9 explainers, 35 of 200, about 1 minute left")
        assert job.locator("progress").evaluate("bar => bar.value / bar.max") == 0.175
        expect(job.locator(".title")).to_have_text(NAME)
        assert "?" in page.url
        page.reload()
        expect(job.locator(".state")).to_have_text("running")
        expect(job.locator(".log")).to_contain_text("way 1")
        expect(page.locator("#file-name")).to_have_text(NAME)  # the file is still chosen
        assert all(request.startswith(address) for request in requests)
        assert faults == []
        query = page.url.partition("?")[2]
    with served({}, tmp_path) as address:
        page.goto(f"{address}/jobs?{query}")
        expect(job.locator(".state")).to_have_text("running")
        job.get_by_role("button", name="Cancel").click()
        expect(job.locator(".state")).to_have_text("cancelled")
        expect(page.locator("#news")).to_contain_text("cancelled")
        expect(job.get_by_role("button", name="Go on")).to_be_visible()
        page.once("dialog", lambda dialog: dialog.accept())
        job.get_by_role("button", name="Remove").click()
        expect(page.locator("#none")).to_be_visible()
        page.goto("about:blank")


def test_an_audit_goes_on_while_the_server_restarts_and_its_run_is_found(page, tmp_path):
    """With the command line itself."""
    with served({}, tmp_path) as address:
        page.goto(f"{address}/jobs")
        choose(page, table(), "films.csv")
        expect(page.locator("#table")).to_be_visible()
        page.click("#choice summary")
        for kind, names in (("explainers", ("attention", "leave_one_out")), ("audits", ("agreement",))):
            group = page.locator(f"[data-choices={kind}]")
            group.get_by_role("button", name="none").click()
            for name in names:
                group.locator(f"input[value={name}]").check()
        expect(page.locator("#chosen")).to_have_text("2 explainers, 1 audit")
        page.fill("#limit", "4")
        page.click("#start")
        expect(page.locator(".state")).to_have_text("running")
        query = page.url.partition("?")[2]
        page.goto("about:blank")
    with served({}, tmp_path) as address:
        page.goto(f"{address}/jobs?{query}")
        expect(page.locator(".state")).to_have_text("finished")
        page.get_by_role("link", name="See what was found").click()
        page.wait_for_url("**/runs/*")
        expect(page.locator("main")).to_contain_text("attention")
        page.goto(f"{address}/runs")
        expect(page.locator(".runs tbody tr")).to_have_count(1)


def test_a_file_that_cannot_be_read_is_refused_beside_the_form(page, tmp_path):
    with served({}, tmp_path) as address:
        page.goto(f"{address}/jobs")
        choose(page, b"text,label\n\0,b\n", "films.csv")
        expect(page.locator("#wrong")).to_contain_text("null byte (line 2)")
        choose(page, b"MZ", "films.exe")
        expect(page.locator("#wrong")).to_contain_text(".csv, .tsv or .jsonl")
        page.click("#start")
        expect(page.locator("#wrong")).to_contain_text("Choose a file first")
        page.select_option("#corpus", "planted:keyword")
        assert "corpus=planted%3Akeyword" in page.url


@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_fits_the_width_and_has_no_grave_fault_of_access(page, tmp_path, monkeypatch, width):
    monkeypatch.setattr(job_runner, "PROGRAM", FAKE)
    page.set_viewport_size({"width": width, "height": 900})
    with served({}, tmp_path) as address:
        page.goto(f"{address}/jobs")
        choose(page, table(), "x" * 90 + ".csv")
        expect(page.locator("#table")).to_be_visible()
        for seed, state in ((GOES_WELL, "finished"), (FAILS, "failed"), (WAITS, "running")):
            start(page, seed)
            expect(page.locator(".job").first.locator(".state")).to_have_text(state)
        page.click("#choice summary")
        page.locator(".job").nth(1).locator(".more summary").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page).response["violations"]
            assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        page.locator(".job").first.get_by_role("button", name="Cancel").click()
        expect(page.locator(".job").first.locator(".state")).to_have_text("cancelled")
        page.goto("about:blank")
