"""Every look at the test partition, in a file that is kept with the project.

A look is the scoring of one model, with its tokenizer, on the test partition of one split. Scoring
the same again tells nothing new and adds no line. Each line is a JSON object with sorted keys that
carries the hash of the line before it (`previous`) and of itself without that key (`sha256`), so
that a line which was changed, moved, inserted or taken from the middle is found. Lines taken from
the end are found by a copy in MLflow's folder, as long as that exists.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from neural_ngram.errors import BoundaryError

__all__ = ["Look", "read", "reconciled", "record"]

_FIRST, _LOCK = "0" * 64, ".ledger.lock"
_Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What was scored, when, and what came out; `corpus_sha256` is that of the split's manifest."""

    time: str
    commit: str | None
    model_sha256: str
    tokenizer_sha256: str
    corpus_sha256: str
    loss_nats: float
    tokens: int

    @property
    def subject(self) -> tuple[str, str, str]:
        """What makes two looks the same one."""
        return self.model_sha256, self.tokenizer_sha256, self.corpus_sha256


def record(ledger: Path, look: Look, store: Path) -> int:
    """The number of this look among those at the same split; a line is added when it is new.

    store: an existing folder for the lock and the copy.

    Raises BoundaryError as `reconciled` does.
    """
    with FileLock(store / _LOCK):
        lines = _reconciled(ledger, store / ledger.name)
        for line in lines:
            if _subject(line) == look.subject:
                number: int = line["look"]
                return number
        earlier = [line for line in lines if line["corpus_sha256"] == look.corpus_sha256]
        last = lines[-1]["sha256"] if lines else _FIRST
        content = {**asdict(look), "look": len(earlier) + 1, "previous": last}
        line = {**content, "sha256": _digest(content)}
        for file in (ledger, store / ledger.name):
            _append(file, [line])
        return len(earlier) + 1


def reconciled(ledger: Path, store: Path) -> list[_Line]:
    """All lines, of the ledger or of its copy in `store`; what one of them lacks is added to it.

    `dvc exp apply`, `git stash` and the like put back an older file: the copy keeps the looks.

    Raises BoundaryError when one was tampered with, or neither is the beginning of the other.
    """
    with FileLock(store / _LOCK):
        return _reconciled(ledger, store / ledger.name)


def _reconciled(ledger: Path, copy: Path) -> list[_Line]:
    here, kept = read(ledger), read(copy)
    common = min(len(here), len(kept))
    if here[:common] != kept[:common]:
        raise BoundaryError(
            f"{ledger} and its copy {copy} tell of different looks; bring back the lines that are "
            f"missing, or delete the copy if what git has is complete"
        )
    _append(ledger, kept[common:])
    _append(copy, here[common:])
    return max(here, kept, key=len)


def _append(file: Path, lines: list[_Line]) -> None:
    if lines:
        with file.open("a", encoding="utf-8", newline="\n") as opened:
            opened.writelines(_text(line) + "\n" for line in lines)
            opened.flush()
            os.fsync(opened.fileno())


def read(ledger: Path) -> list[_Line]:
    """All lines, verified; none when there is no file.

    Raises BoundaryError naming the first line that is damaged or does not follow the one before.
    """
    if not ledger.exists():
        return []
    return list(_verified(ledger, ledger.read_text(encoding="utf-8").splitlines()))


def _verified(ledger: Path, texts: list[str]) -> Iterator[_Line]:
    previous, looks = _FIRST, dict[str, int]()
    for number, text in enumerate(texts, start=1):
        complaint = None
        try:
            line: _Line = json.loads(text)
            content = {key: value for key, value in line.items() if key != "sha256"}
            corpus = line["corpus_sha256"]
            looks[corpus] = looks.get(corpus, 0) + 1
            if line["sha256"] != _digest(content) or text != _text(line):
                complaint = "was changed after it was written"
            elif line["previous"] != previous or line["look"] != looks[corpus]:
                complaint = "does not follow the line before it"
        except (ValueError, KeyError, TypeError, AttributeError):
            complaint = "is damaged"
        if complaint:
            raise BoundaryError(
                f"{ledger} line {number} {complaint}: {text[:60]!r}…; looks at the test partition "
                "cannot be counted, so restore the file with git"
            )
        previous = line["sha256"]
        yield line


def _subject(line: _Line) -> tuple[str, str, str]:
    return line["model_sha256"], line["tokenizer_sha256"], line["corpus_sha256"]


def _text(line: _Line) -> str:
    return json.dumps(line, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _digest(content: _Line) -> str:
    return hashlib.sha256(_text(content).encode()).hexdigest()
