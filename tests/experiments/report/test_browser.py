"""The page in a real browser: it draws, it opens stories, it filters, it runs nothing foreign and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browser import chromium, page_of, reason_to_skip

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(reason_to_skip() is not None, reason=str(reason_to_skip()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def opened(browser: Browser, reported: Any) -> Iterator[Page]:
    with page_of(browser, reported.written.page, viewport={"width": 1200, "height": 900}) as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Page:
    """The page with no story open and no filter set."""
    opened.evaluate("document.getElementById('dialog').close()")
    opened.fill("#search", "")
    opened.select_option("#run", "")
    opened.select_option("#lost", "")
    opened.set_checked("#wrong", False)
    opened.set_checked("#disagree", False)
    return opened


def shown(page: Page) -> int:
    return int(page.inner_text("#count").split(" of ")[0])


def test_every_figure_is_drawn(page: Page) -> None:
    assert page.locator("#forest svg circle").count() == 3
    assert page.locator("#pareto svg circle").count() == 4
    assert page.locator("figure.waterfall svg").count() == 4
    assert page.locator("figure.waterfall").first.locator("rect").count() == 5
    assert page.locator("figure.refinement svg rect").count() >= 3
    for figure in page.locator("figure svg").all():
        box = figure.bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 50


def test_a_story_tells_plan_attempts_code_output_feedback_reflection_and_verdict(page: Page, reported: Any) -> None:
    page.select_option("#run", "1")
    page.select_option("#lost", "reflection")
    page.locator("#rows button").first.click()
    page.wait_for_selector("#dialog[open] section")
    story = page.inner_text("#story")
    for words in ("Problem", "Plan", "Attempt 1", "Program", "Output", "Reflection", "Verification", "right answer"):
        assert words in story
    assert [run.name for run in reported.contents.runs] == [
        text.rsplit(" ", 2)[0].split(", sample")[0] for text in page.locator("#story h3").all_inner_texts()[1:5]
    ]
    page.keyboard.press("Escape")
    assert not page.locator("#dialog").is_visible()


def test_a_refined_attempt_shows_what_failed_before_and_the_feedback(page: Page) -> None:
    for number in range(8):
        page.locator("#rows button").nth(number).click()
        page.wait_for_selector("#dialog[open] section")
        if page.locator("#story .earlier").count():
            break
        page.keyboard.press("Escape")
    earlier = page.locator("#story .earlier").first.inner_text()
    assert "before correction 1" in earlier
    assert "NameError: name 'total' is not defined" in earlier


def test_the_page_works_by_keyboard_alone(page: Page) -> None:
    page.locator("#rows button").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#dialog[open] section")
    assert page.inner_text("#name") == "p0001"
    page.keyboard.press("ArrowRight")
    page.locator("#name", has_text="p0002").wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator("#name", has_text="p0001").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "p0001"


def test_filters_keep_what_they_say(page: Page, reported: Any) -> None:
    everything = shown(page)
    assert everything == 260
    page.select_option("#run", "2")
    page.check("#wrong")
    summary = reported.contents.runs[2].summary
    wrong = shown(page)
    assert wrong == summary.n - round(summary.accuracy * summary.n)
    page.select_option("#lost", "engine")
    assert shown(page) == 1
    assert page.locator("#rows button").all_inner_texts() == ["p0003"]
    page.select_option("#lost", "")
    page.uncheck("#wrong")
    page.select_option("#run", "")
    page.check("#disagree")
    assert 0 < shown(page) < everything
    marks = page.locator("#rows tr").first.locator("td").all_inner_texts()
    assert len({mark.startswith("✓") for mark in marks} | {mark for mark in marks if "%" in mark}) > 1
    page.uncheck("#disagree")
    page.fill("#search", "P0017")
    assert page.locator("#rows button").all_inner_texts() == ["p0017"]
    page.fill("#search", "no such words")
    assert shown(page) == 0


def test_more_rows_come_when_asked_for(page: Page) -> None:
    assert page.locator("#rows tr").count() == 200
    page.click("#more")
    assert page.locator("#rows tr").count() == 260
    assert not page.locator("#more").is_visible()


def test_what_models_wrote_stays_text(page: Page) -> None:
    page.locator("#rows button").first.click()
    page.wait_for_selector("#dialog[open] section")
    assert "</script><script>" in page.inner_text("#story")
    assert "{{ 7 * 7 }}" in page.inner_text("#story")
    assert page.locator("img").count() == 0
    assert page.locator("main b, main i, header i, dialog b").count() == 0
    assert page.title() == page.inner_text("h1") == "A <i>title</i> & more"
    assert page.locator("script:not([type])").count() == 1


def test_the_theme_follows_the_system_and_the_user(browser: Browser, reported: Any) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with page_of(browser, reported.written.page, color_scheme="dark") as page:
        dark = page.evaluate(colour)
        page.click("#theme")
        light = page.evaluate(colour)
        assert page.inner_text("#theme") == "Theme: light"
        page.click("#theme")
        assert page.evaluate(colour) == dark != light
    with page_of(browser, reported.written.page, color_scheme="light") as page:
        assert page.evaluate(colour) == light


def test_nothing_sticks_out_on_a_phone(browser: Browser, reported: Any) -> None:
    with page_of(browser, reported.written.page, viewport={"width": 360, "height": 740}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.locator("#rows button").nth(1).click()
        page.wait_for_selector("#dialog[open] section")
        assert page.evaluate("document.getElementById('dialog').scrollWidth") <= 360


def test_the_page_s_policy_runs_no_foreign_script_and_loads_nothing(page: Page) -> None:
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.foreign = 1';"
        " document.body.append(s); s.remove(); }"
    )
    assert page.evaluate("window.foreign") is None
    failed = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'loaded', (error) => String(error))")
    assert "Failed to fetch" in failed


def test_no_console_error_and_no_request_leaves_the_page(browser: Browser, reported: Any) -> None:
    said: list[str] = []
    asked: list[str] = []
    with page_of(browser, reported.written.page) as page:
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.locator("#rows button").first.click()
        page.wait_for_selector("#dialog[open] section")
        page.click("#after")
        page.click("#close")
        page.fill("#search", "triangle")
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
