"""The playground, typed and clicked in a real browser."""

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import torch
from patience import A_PAGE, PATIENCE, wait_for
from playwright.sync_api import Page, expect, sync_playwright

from neural_ngram.artifacts import sha256_of_file
from neural_ngram.cli.playground.play import listening
from neural_ngram.errors import ConfigurationError
from neural_ngram.model import storage as model_storage
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, TokenizerSettings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tracking.run import start_run
from neural_ngram.tracking.spool import MODEL_TAG

ROOT = Path(__file__).parents[1]
SCRIPT = "<script>document.title='broken'</script>"


def model_of_order(shift: int, size: int) -> Model:
    """After the token of ID t comes t + shift."""
    settings = ModelSettings(embedding_width=size, hidden="none")
    shape = Architecture(vocabulary_size=size, context_length=1, settings=settings)
    model = initialise(shape, SplitMix64(1), torch.float64)
    model.parameters["embedding"].copy_(torch.eye(size))
    model.parameters["output"].copy_(4 * torch.eye(size).roll(shift, dims=1))
    return model


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in artifacts/, by which the words follow each other, and a run that goes backwards"""
    folder = tmp_path_factory.mktemp("playground")
    for name in ("conf", "src", "params.yaml"):
        (folder / name).symlink_to(ROOT / name)
    corpus = [f"{SCRIPT} one three two"]
    tokenizer = tokenizers.learn(corpus, TokenizerSettings(kind="word", markers="none"))
    sha256 = tokenizers.save(tokenizer, folder / "artifacts/tokenizer")
    origin = {"tokenizer_sha256": sha256, "documents_sha256": "0" * 64}
    model_storage.save(model_of_order(1, 4), folder / "artifacts/model/model.safetensors", origin)
    backwards = folder / "backwards/model.safetensors"
    model_storage.save(model_of_order(-1, 4), backwards, origin)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DVC_ROOT", str(folder))
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        with start_run("backwards", {}) as run:
            run.tags({MODEL_TAG: sha256_of_file(backwards)})
            run.artifact(backwards, "model")
            run.artifact(folder / "artifacts/tokenizer", "tokenizer")
    return folder


@contextmanager
def playing(project: Path, port: int, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A playground that ends with the test, however that ends."""
    environment = {**os.environ, "DVC_ROOT": str(project), "PYTHONPATH": str(ROOT / "src")}
    environment.pop("MLFLOW_TRACKING_URI", None)
    environment.pop("PYTEST_CURRENT_TEST", None)
    code = "import sys; from neural_ngram.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "play", "--no-browser", "--port", str(port)]
    with subprocess.Popen(command, cwd=project, env=environment, text=True, **options) as server:
        try:
            yield server
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with playing(project, port) as server:
        wait_for(lambda: server.poll() is not None or _answers(port), "an answer of the server")
        assert server.poll() is None, "the server ended"
        yield f"http://127.0.0.1:{port}/"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_taken_port_gives_way_to_the_next_and_the_address_answers_once_it_is_said(project: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with playing(project, port, stdout=subprocess.PIPE) as server:
            assert server.stdout
            line = server.stdout.readline()
            said = re.fullmatch(
                r"playground at (http://127\.0\.0\.1:(\d+)); Ctrl-C stops it\n", line
            )
            assert said, line
            assert int(said[2]) > port
            with urllib.request.urlopen(said[1], timeout=A_PAGE) as answer:
                assert answer.status == 200


@pytest.mark.parametrize("port", [-1, 2**16])
def test_a_port_that_does_not_exist_is_refused(port: int):
    with pytest.raises(ConfigurationError, match=f"^--port is {port}, but must be from 0 to 65535"):
        listening(port)


def test_any_port_is_a_port_that_listens():
    with listening(0) as door:
        assert _answers(door.getsockname()[1])


@pytest.fixture
def page(address: str) -> Iterator[Page]:
    """The page in a browser that is told of every request that leaves the machine."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium; `apt-get install chromium` brings one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.set_default_timeout(A_PAGE)
        expect.set_options(timeout=A_PAGE)
        requests = list[str]()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        page.get_by_label("Prompt").fill("one")
        expect(page.locator(".side").nth(1).locator(".bar")).to_have_count(4)
        yield page
        browser.close()
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []


def leftmost(page: Page, slider: str) -> None:
    page.get_by_label(slider, exact=True).click(position={"x": 1, "y": 10})


def test_two_models_are_compared_and_text_of_the_corpus_does_not_run(page: Page):
    forwards, backwards = page.locator(".side").all()
    expect(forwards.locator(".token").first).to_have_text("three")
    expect(backwards.locator(".token").first).to_have_text(SCRIPT)
    backwards.locator(".bar").first.click()
    expect(page.get_by_label("Prompt")).to_have_value(f"one {SCRIPT}")
    expect(forwards.locator(".token").first).to_have_text("one")
    expect(page).to_have_title("neural n-gram")


def test_a_click_appends_a_token_and_sampling_goes_on(page: Page):
    forwards = page.locator(".side").first
    forwards.locator(".bar").first.click()
    expect(page.get_by_label("Prompt")).to_have_value("one three")
    leftmost(page, "temperature")
    expect(forwards.locator(".bar")).to_have_count(1)
    expect(forwards.locator(".bar .number")).to_have_text("100.0%")
    forwards.get_by_role("button", name="sample on").click()
    expect(page.get_by_label("Prompt")).to_have_value(re.compile("^one three two"))


def test_top_k_leaves_so_many_tokens(page: Page):
    page.get_by_label("top-k (0: off)", exact=True).click(position={"x": 5, "y": 10})
    number = page.locator(".slider", has_text="top-k").locator(".named > *").nth(1)
    expect(number).to_have_text(re.compile("^[123]$"))
    kept = int(number.inner_text())
    expect(page.locator(".side").first.locator(".bar")).to_have_count(kept)


def test_neighbours_of_a_token_are_listed_and_an_unknown_one_is_told(page: Page):
    side = page.locator(".side").first
    page.get_by_label("Neighbours of token").fill("one")
    expect(side.locator(".neighbour")).to_have_count(3)
    page.get_by_label("Neighbours of token").fill("four")
    expect(side.locator(".refused")).to_contain_text("the vocabulary has no token 'four'")


@pytest.mark.promise("reliability")
def test_a_prompt_that_is_too_long_is_refused(page: Page):
    page.get_by_label("Prompt").fill("one " * 100_000)
    side = page.locator(".side").first
    expect(side.locator(".refused")).to_contain_text("more than 10,000 characters")
    expect(side.locator(".bar")).to_have_count(0)
    page.get_by_label("Prompt").fill("one")
    expect(side.locator(".bar")).to_have_count(4)


def status(address: str, path: str, headers: dict[str, str]) -> int:
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)) as connection:
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            return answer.status


SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport="
UPGRADE = {
    **{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.promise("reliability")
def test_only_the_page_itself_is_answered(address: str):
    own = urlsplit(address).netloc
    port = own.partition(":")[2]
    paths = {"/": {}, f"{SOCKET}polling": {}, f"{SOCKET}websocket": UPGRADE}
    for path, others in paths.items():
        accepted = 101 if others else (200 if path == "/" else status(address, path, others))
        assert accepted != 403
        for host in (own, f"localhost:{port}"):
            assert status(address, path, others | {"Host": host}) == accepted
            assert status(address, path, others | {"Host": host, "Origin": f"http://{own}"}) == (
                accepted
            )
        for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", ""):
            assert status(address, path, others | {"Host": host}) in (400, 403)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://{own}"):
            assert status(address, path, others | {"Host": own, "Origin": origin}) == 403


def test_a_phone_needs_no_scrolling_sideways(page: Page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
