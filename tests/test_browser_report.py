"""The page of a run in a real browser, on a phone and on a desk, by day and by night."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import A_PAGE
from test_report import HOSTILE, LIBRARY, measured

from neural_ngram.export.page import render

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHARTS = 7
DRAWN = f"document.querySelectorAll('.chart svg').length === {CHARTS}"


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("report") / "index.html"
    file.write_text(render(measured(), LIBRARY), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(params=[(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def page(request: pytest.FixtureRequest, browser, address: str) -> Iterator:
    """The page, drawn; it has neither complained nor asked for anything but itself."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.on("request", lambda request: requests.append(request.url))
    page.set_default_timeout(A_PAGE)
    page.goto(address)
    page.wait_for_function(DRAWN)
    yield page
    page.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [address]


def test_nothing_is_wider_than_the_screen(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "[...document.querySelectorAll('.chart')].every(c => c.scrollWidth <= c.clientWidth)"
    )


def test_every_chart_has_marks(page):
    marks = page.evaluate(
        "[...document.querySelectorAll('.chart')].map("
        "c => c.querySelectorAll('[class*=mark-] path, .mark-text text, .mark-rule line').length)"
    )
    assert len(marks) == CHARTS
    assert all(marks)


def test_hostile_text_is_shown_and_does_nothing(page):
    assert page.title() == f"corpus {HOSTILE}"
    assert page.locator("pre").first.text_content() == HOSTILE
    assert page.locator("img").count() == 0


def test_a_token_is_read_by_pointing_at_it(page):
    page.locator("#embedding .mark-symbol path").first.hover(force=True)
    page.locator("#vg-tooltip-element.visible").wait_for()
    assert HOSTILE[:20] in page.locator("#vg-tooltip-element").inner_text()
    assert page.locator("img").count() == 0


def test_charts_follow_the_colour_scheme(page):
    fill = "getComputedStyle(document.querySelector('#curves .role-axis-label text')).fill"
    before = page.evaluate(fill)
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    page.emulate_media(color_scheme="light" if dark else "dark")
    page.wait_for_function(f"{fill} !== {before!r}")
    page.wait_for_function(DRAWN)
