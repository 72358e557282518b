"""The runs, their curves and the registered model, seen in MLflow's own pages in a browser."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import A_PAGE

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NAMES = ("embedded swiglu C4 D32 H64", "embedded linear C4 D32")  # as `store` has them


@pytest.fixture(scope="module")
def address(served, store: Path) -> Iterator[str]:
    command = "mlflow ui --backend-store-uri sqlite:///mlflow.db --workers 1"
    with served(command, "/health", store, {}) as address:
        yield f"{address}/#"


@pytest.fixture(scope="module")
def page(address: str):
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(A_PAGE)
        yield page
        browser.close()


def test_the_table_of_runs_shows_readable_names(page, address: str):
    page.goto(f"{address}/experiments/1/runs")
    for name in NAMES:
        page.get_by_text(name, exact=True).first.wait_for()


def test_the_curves_of_two_models_lie_over_each_other(page, address: str):
    page.goto(f"{address}/experiments/1/runs?compareRunsMode=CHART")
    page.get_by_text("validation.loss_nats").first.wait_for()
    page.wait_for_function(
        "[...document.querySelectorAll('.js-plotly-plot')]"
        ".some(plot => plot.querySelectorAll('.scatterlayer .trace').length >= 2)"
    )


def test_the_page_of_the_model_shows_its_versions_and_the_alias(page, address: str):
    page.goto(f"{address}/models/neural-ngram")
    for text in ("Version 1", "Version 2", "newest"):
        page.get_by_text(re.compile(rf"{text}$")).first.wait_for()


def test_the_page_of_a_version_shows_the_signature(page, address: str):
    page.goto(f"{address}/models/neural-ngram/versions/2")
    page.get_by_text("Inputs (1)").click()
    page.get_by_text("prompt", exact=False).first.wait_for()
    page.get_by_text("Outputs (2)").click()
    page.get_by_text("continuations", exact=False).first.wait_for()


def test_the_table_opens_with_the_columns_that_compare_models(page, address: str):
    page.goto(f"{address}/experiments/1/runs?viewStateShareKey=comparison")
    header = page.get_by_role("columnheader")
    for column in ("validation.loss_nats", "optimizer.learning_rate"):
        header.filter(has_text=re.compile(f"^{re.escape(column)}$")).first.wait_for()
