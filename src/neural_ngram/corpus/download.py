"""Downloading the files of a corpus, which are kept only when their hashes match."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import fsspec

from neural_ngram.artifacts import atomic, sha256_of_file
from neural_ngram.errors import CorpusError

__all__ = ["fetch"]

SCHEMES = ("https", "http", "file")


def fetch(url: str, sha256: str | None, folder: Path, *, most_bytes: int = 10**9) -> Path:
    """Download what `url` names (several separated by spaces) into `folder` once, verified.

    Returns the file, or the folder when there are several. A file that already exists with the
    right hash is not downloaded again; a download with another hash is not kept.

    Raises CorpusError when a hash is missing, does not match, or the download fails, when a file
    turns out to be larger than `most_bytes`, and when two files would get the same name.
    """
    urls, hashes = url.split(), (sha256 or "").lower().split()
    if len(urls) != len(hashes):
        raise CorpusError(
            f"corpus.url names {len(urls)} files but corpus.sha256 holds {len(hashes)} hashes; "
            "give one SHA-256 for each"
        )
    for one in urls:
        if urlsplit(one).scheme not in SCHEMES or "::" in one:
            raise CorpusError(
                f"corpus.url is {one}, but must begin with one of {', '.join(SCHEMES)}; "
                "download it by other means and set corpus.path"
            )
    names = [PurePosixPath(urlsplit(one).path).name for one in urls]
    if not all(names) or len(set(names)) != len(names) or not names:
        raise CorpusError(
            f"corpus.url must name files with distinct names, but ends in {names}; "
            "give other addresses, or set corpus.path to a local folder"
        )
    paths = [folder / name for name in names]
    for one, expected, path in zip(urls, hashes, paths, strict=True):
        if not path.exists() or sha256_of_file(path) != expected:
            _download(one, expected, path, most_bytes)
    return paths[0] if len(paths) == 1 else folder


def _blocks(url: str) -> Iterator[bytes]:
    try:
        with fsspec.open(url, "rb") as remote:
            while block := remote.read(1 << 20):
                yield block
    except Exception as problem:
        raise CorpusError(
            f"cannot download {url}: {_reason(problem)}; "
            "check the network, or set corpus.path to a local copy"
        ) from problem


def _reason(problem: Exception) -> str:
    """The part of a library's message that cannot quote the response, which may be test text."""
    first = (str(problem).replace("\\n", "\n").splitlines() or [""])[0]
    return first[:200] or type(problem).__name__


def _download(url: str, expected: str, path: Path, most_bytes: int) -> None:
    with atomic(path) as temporary:
        written = 0
        with temporary.open("wb") as local:
            for block in _blocks(url):
                written += len(block)
                if written > most_bytes:
                    raise CorpusError(
                        f"{url} is larger than corpus.most_bytes={most_bytes}; the download was "
                        "stopped, so check the address or raise the limit"
                    )
                local.write(block)
        found = sha256_of_file(temporary)
        if found != expected:
            raise CorpusError(
                f"{url} has SHA-256 {found}, but corpus.sha256 is {expected}; "
                "the file has changed or is the wrong one, so it was not kept"
            )
