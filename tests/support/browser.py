"""The system's Chromium, driven by Playwright, on a page that lies on the disk."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")


def reason_to_skip() -> str | None:
    """Why no browser can be had here; ``None`` where one can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    if not any(map(shutil.which, NAMES)):
        return "no Chromium: apt-get install chromium"
    return None


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. Playwright allows one at a time in a thread."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, NAMES)))
    # Chromium's own sandbox does not work for root; the page is our own, and tests must run in containers.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Browser, file: Path, **options: Any) -> Iterator[Page]:
    """The page, opened and ready to be used. ``options`` are Playwright's for a context: viewport, color_scheme, …"""
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("html[data-ready]", timeout=30_000)
        yield page
    finally:
        context.close()
