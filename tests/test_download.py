"""Files from the network: bounded, verified, and not fetched twice."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from neural_ngram.corpus.download import fetch
from neural_ngram.errors import CorpusError


class Endless(BaseHTTPRequestHandler):
    """A server whose file never ends, or is small only as long as it is compressed."""

    sent = 0

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path.startswith("/bomb"):
            content = gzip.compress(bytes(20_000_000))
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        self.end_headers()
        try:
            while Endless.sent < 2**28:
                Endless.sent += self.wfile.write(b"a" * 2**16)
        except OSError:
            pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_) -> None:
        pass


@contextmanager
def served(handler: type[BaseHTTPRequestHandler] = Endless) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("name", ["endless.txt", "bomb.txt"])
def test_a_download_larger_than_allowed_is_given_up_while_it_runs(tmp_path: Path, name: str):
    Endless.sent = 0
    with served() as address, pytest.raises(CorpusError, match=r"larger than corpus\.most_bytes=5"):
        fetch(f"{address}/{name}", "0" * 64, tmp_path / "raw", most_bytes=5_000_000)
    assert Endless.sent < 100_000_000
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_file_of_exactly_the_allowed_size_is_fetched(tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"a" * 100)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert fetch(file.as_uri(), sha256, tmp_path / "raw", most_bytes=100).exists()
    with pytest.raises(CorpusError, match="most_bytes=99"):
        fetch(file.as_uri(), sha256, tmp_path / "raw2", most_bytes=99)


@pytest.mark.parametrize("url", ["/etc/passwd", "s3://b/a.txt", "zip://a.txt::http://x/b.txt"])
def test_other_kinds_of_addresses_are_refused(tmp_path: Path, url: str):
    with pytest.raises(CorpusError, match="must begin with one of https, http, file"):
        fetch(url, "0" * 64, tmp_path)


def test_over_http_each_file_is_asked_for_until_it_is_there_and_right(tmp_path: Path):
    remote, asked = tmp_path / "remote", list[str]()
    remote.mkdir()

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *arguments) -> None:
            super().__init__(*arguments, directory=str(remote))

        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_) -> None:
            pass

    contents = {"one.txt": b"one\n" * 9, "two.txt": b"two\n"}
    for name, content in contents.items():
        (remote / name).write_bytes(content)
    hashes = " ".join(hashlib.sha256(content).hexdigest() for content in contents.values())
    with served(Files) as address:
        urls = " ".join(f"{address}/{name}?as=text" for name in contents)
        folder = fetch(urls, hashes, tmp_path / "raw")
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == contents
        assert set(asked) == {"/one.txt?as=text", "/two.txt?as=text"}
        asked.clear()
        fetch(urls, hashes, folder)
        assert asked == []
        (folder / "two.txt").write_bytes(b"damaged")
        fetch(urls, hashes, folder)
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == contents
        assert set(asked) == {"/two.txt?as=text"}
