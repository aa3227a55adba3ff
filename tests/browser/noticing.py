"""What a page does that a person would not want."""

from __future__ import annotations

from playwright.sync_api import Page


def noticed(page: Page) -> tuple[list[str], list[str]]:
    """The addresses that the page asks for from now on, and what goes wrong in it."""
    requests: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    return requests, faults
