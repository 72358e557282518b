"""Presets with an address: fetched over HTTP, from a state without data/raw, inside the sandbox."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from neural_ngram.pipeline.boundary import landlock

ROOT = Path(__file__).parents[2]
PRESETS = {
    file.stem: yaml.safe_load(file.read_text()) for file in (ROOT / "conf/corpus").glob("*.yaml")
}
WITH_ADDRESS = sorted(name for name, preset in PRESETS.items() if "url" in preset)
LINES = "".join(f"line number {n} of {n % 7} words\n" for n in range(100))
NO_MORE = "\t_" * 8  # columns of a word
TREEBANK = "".join(f"# text = Sentence number {n}.\n1\tSentence{NO_MORE}\n\n" for n in range(50))


class Server(BaseHTTPRequestHandler):
    """Serves a stand-in of any file; the first folder of the path says how it misbehaves."""

    def do_GET(self) -> None:
        kind, content = urlsplit(self.path).path.split("/")[1], stand_in(self.path)
        if kind == "moved":
            self.send_response(302)
            self.send_header("Location", self.path.replace("/moved/", "/plain/"))
            self.end_headers()
            return
        length = {"cut": len(content) + 500, "short": len(content) - 500}.get(kind, len(content))
        self.send_response(404 if kind == "absent" else 200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


def stand_in(address: str) -> bytes:
    """A text in the format of the file, different for each name."""
    body = TREEBANK if address.endswith(".conllu") else LINES
    name = address.rpartition("/")[2]
    return body.replace("number", f"of {name}").encode()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


def overrides(server: str, preset: str, kind: str) -> list[str]:
    """The preset with its addresses on this server, and the hashes of the stand-ins."""
    paths = [urlsplit(url).path for url in PRESETS[preset]["url"].split()]
    hashes = [hashlib.sha256(stand_in(path)).hexdigest() for path in paths]
    urls = [f"{server}/{kind}{path}" for path in paths]
    return [
        f"corpus={preset}",
        f"corpus.url='{' '.join(urls)}'",
        f"corpus.sha256='{' '.join(hashes)}'",
    ]


def fetched(folder: Path) -> dict[str, bytes]:
    files = (folder / "data/raw").rglob("*")
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def expected(preset: str) -> dict[str, bytes]:
    names = [url.rpartition("/")[2] for url in PRESETS[preset]["url"].split()]
    return {name: stand_in(name) for name in names}


def test_there_are_presets_with_an_address():
    assert {"names", "ewt", "toy_gpt"} <= set(WITH_ADDRESS)


@pytest.mark.promise("boundary")
@pytest.mark.parametrize("kind", ["plain", "moved"])
@pytest.mark.parametrize("preset", WITH_ADDRESS)
def test_every_preset_with_an_address_is_fetched(project, server: str, preset: str, kind: str):
    assert not (project.folder / "data/raw").exists()
    composed = project.run("neural-ngram", "compose", *overrides(server, preset, kind))
    assert composed.returncode == 0, composed.stderr
    done = project.stage("split_corpus")
    assert done.returncode == 0, done.stdout + done.stderr
    assert fetched(project.folder) == expected(preset)
    assert ("only Python's own reads" in done.stdout) == (landlock.version() == 0)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("cut", "cannot download {url}: "),
        ("short", "cannot download {url}: "),
        ("absent", "cannot download {url}: "),
        ("other", "{url} has SHA-256 "),
    ],
)
def test_what_does_not_arrive_whole_is_one_line_and_is_not_kept(
    project, server: str, kind: str, told: str
):
    changed = overrides(server, "names", kind)
    if kind == "other":
        changed[2] = f"corpus.sha256={'0' * 64}"
    assert project.run("neural-ngram", "compose", *changed).returncode == 0
    done = project.stage("split_corpus")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    url = changed[1].partition("=")[2].strip("'")
    assert line.startswith(f"split-corpus: error: {told.format(url=url)}"), line
    assert "line of" not in line
    assert fetched(project.folder) == {}
    assert not (project.folder / "data/splits/train.parquet").exists()


@pytest.mark.promise("boundary")
@pytest.mark.parametrize("options", [(), ("--temp",), ("--queue",)], ids=["here", "temp", "queue"])
def test_an_experiment_fetches_its_corpus(project, server: str, options: tuple[str, ...]):
    settings = [word for text in overrides(server, "names", "moved") for word in ("-S", text)]
    project.dvc("exp", "run", *options, "--name", "fetching", *settings, "split-corpus")
    if options == ("--queue",):
        project.dvc("exp", "run", "--run-all")
    (name,) = project.run(
        *("git", "for-each-ref", "--format=%(refname)", "refs/exps/*/*/fetching")
    ).stdout.split()
    lock = yaml.safe_load(project.run("git", "show", f"{name}:dvc.lock").stdout)
    (md5,) = (
        out["md5"]
        for out in lock["stages"]["split-corpus"]["outs"]
        if out["path"] == "data/splits/manifest.csv"
    )
    manifest = (project.folder / ".dvc/cache/files/md5" / md5[:2] / md5[2:]).read_text()
    assert len(manifest.splitlines()) == 1 + len(stand_in("names.txt").splitlines())
