"""Prints how quickly pages open and answer in Chromium: python -m benchmarks.pages.

A report over 25,000 texts opened from disk; one press of an arrow key on a bar of attention, until the app has
answered, for MiniLM and for a text of 2,000 words.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

from assay.report.audit import write
from assay.run.workbench import Workbench
from benchmarks import live, minilm
from tests.report.synthetic import synthetic_record
from tests.report.test_sizes import repeated
from tests.serving import served

TEXTS, WORDS, PRESSES = 25_000, 2_000, 30
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu"]


def opening(browser: Browser, place: Path) -> float:
    """Seconds until the page has loaded and its browser of examples stands."""
    page = browser.new_page()
    start = time.perf_counter()
    page.goto(place.as_uri())
    page.wait_for_selector("#browser details")
    found = time.perf_counter() - start
    page.close()
    return found


def pressing(page: Page) -> list[float]:
    """Milliseconds from each press of an arrow key on the first bar until the server has answered it."""
    bar = page.get_by_role("slider").first
    bar.focus()
    found = []
    for number in range(PRESSES):
        start = time.perf_counter()
        with page.expect_response("**/api/attend"):
            page.keyboard.press("ArrowUp" if number % 2 == 0 else "ArrowDown")
        found.append(1000 * (time.perf_counter() - start))
    return sorted(found)


def main() -> None:
    benches = {name: Workbench(made, name) for name, made in (("LSTM", live.small(WORDS)), ("MiniLM", live.large()))}
    long = " ".join(f"{'good' if place % 7 else 'dull'} film" for place in range(WORDS // 2))
    print("| page | found |\n|---|---|")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        place = Path(folder) / "report.html"
        write(repeated(synthetic_record(count=100), TEXTS // 100), place)
        seconds = statistics.median(opening(browser, place) for _ in range(3))
        print(f"| report over {TEXTS:,} texts | {place.stat().st_size / 1e6:.2f} MB, opens in {seconds:.2f} s |")
        with served(benches, Path(folder)) as address:
            for model, text in (("MiniLM", minilm.SENTENCES[0]), ("LSTM", long)):
                page = browser.new_page()
                page.goto(
                    f"{address}/?" + urlencode({"model": model, "text": text, "explainers": "attention,gradient"})
                )
                page.get_by_role("slider").first.wait_for()
                found = pressing(page)
                told = f"median {statistics.median(found):.0f} ms, slowest {found[-1]:.0f} ms"
                print(f"| one press on a bar, {model}, {len(text.split()):,} words | {told} |")
        browser.close()


if __name__ == "__main__":
    main()
