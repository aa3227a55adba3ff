"""The screenshots of README and guides: a report, the app, a comparison, each opened in Chromium.

    assay audit --corpus planted:negation --limit 200 --seed 0 --out runs/lstm-0    # and with seeds 1 and 2
    assay train --corpus planted:negation --encoder average --out runs/average
    assay audit --corpus planted:negation --limit 200 --model runs/average --out runs/average-0
    python docs/figures/screenshots.py docs/figures

Texts are planted or typed in here: what others wrote is not ours to show.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

from assay.cli.options import Reading
from assay.run.workbench import Workbench
from assay.serve.library import Library
from tests.serving import served

RUNS = Path("runs")
MODEL = "runs/lstm-0/model"
TEXT = "the plot was not good and the acting never seemed dull , a truly moving film"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu"]


def opened(browser: Browser, address: str, width: int, height: int, scheme: str = "light") -> Page:
    """A page at rest."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_timeout(1500)
    return page


def taken(page: Page, path: Path, selector: str | None = None) -> None:
    """A picture of what is in view, from the selected place on."""
    if selector is not None:
        page.locator(selector).first.evaluate("place => place.scrollIntoView({behavior: 'instant'})")
        page.wait_for_timeout(800)
    page.screenshot(path=path)
    page.context.close()


def main(folder: Path) -> None:
    runs = {run.name.split("/")[-1]: run.id for run in Library((RUNS,)).runs()}
    report = f"/runs/{runs['lstm-0']}/report"
    asked = urlencode(
        {"model": MODEL, "text": TEXT, "explainers": "attention,gradient,integrated_gradients,lrp,leave_one_out"}
    )
    compared = "/compare?" + urlencode([("run", runs[name]) for name in ("lstm-0", "lstm-1", "lstm-2", "average-0")])
    live_model = Workbench(Reading().opened(MODEL), MODEL)
    with served({MODEL: live_model}, RUNS) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        taken(opened(browser, address + report, 1200, 900), folder / "report.png")
        taken(opened(browser, address + report, 1200, 900), folder / "report-cards.png", "#audits")
        taken(opened(browser, address + report, 1200, 1000, "dark"), folder / "report-examples.png", "#examples")
        page = opened(browser, f"{address}/?{asked}", 1200, 800)
        page.get_by_role("button", name="Furthest").click()
        page.wait_for_timeout(1500)
        taken(page, folder / "app-attention.png", "text=Attention under your hands")
        taken(opened(browser, f"{address}/?{asked}", 390, 844, "dark"), folder / "app-phone.png", "text=The decision")
        taken(opened(browser, address + compared, 1200, 900), folder / "compare.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
