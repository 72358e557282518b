"""Every test evaluation, in a file that is kept with the project.

A test evaluation is the scoring of one model, with its tokenizer, on the test partition of one
split. Scoring the same again is no new evaluation and adds no line. Each line is a JSON object with
sorted keys that carries the hash of the line before it (`previous`) and of itself without that key
(`sha256`), so that a line which was changed, moved, inserted or taken from the middle is found.
Lines taken from the end are found by a copy in MLflow's folder, as long as that exists.

A figure on test counts only together with its line: `confirm` finds it, or refuses the figure.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from neural_ngram.errors import BoundaryError

__all__ = ["Evaluation", "Line", "confirm", "number_of", "read", "reconciled", "record"]

PATIENCE_SECONDS = 30.0  # others hold the lock for milliseconds
_FIRST, _LOCK = "0" * 64, ".ledger.lock"
_SUBJECT = ("model_sha256", "tokenizer_sha256", "corpus_sha256")
Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What was scored, when, and the result; `corpus_sha256` is that of the split's manifest."""

    time: str
    commit: str | None
    model_sha256: str
    tokenizer_sha256: str
    corpus_sha256: str
    loss_nats: float
    tokens: int


def record(ledger: Path, evaluation: Evaluation, store: Path, working: Path | None = None) -> Line:
    """The line of this evaluation, which is added when it is new.

    store: an existing folder for the lock and the copy.
    working: the ledger of the folder that a temporary experiment runs in. It is given all lines,
    so that the experiment's commit holds them together with the figure.

    Raises BoundaryError as `reconciled` does, and when `working` has lines that the ledger lacks.
    """
    copy = store / ledger.name
    with _held(store):
        lines = _reconciled(ledger, copy)
        found = next((line for line in lines if _is_same(line, asdict(evaluation))), None)
        if found is None:
            found = _following(lines, evaluation)
            for file in (ledger, copy):
                _append(file, [found])
            lines = [*lines, found]
        if working is not None and working.resolve() != ledger.resolve():
            _append(working, _missing(working, read(working), lines))
    return found


def _following(lines: list[Line], evaluation: Evaluation) -> Line:
    """The line of a new evaluation after these."""
    earlier = [line for line in lines if line["corpus_sha256"] == evaluation.corpus_sha256]
    last = lines[-1]["sha256"] if lines else _FIRST
    content = {**asdict(evaluation), "evaluation": len(earlier) + 1, "previous": last}
    return {**content, "sha256": _digest(content)}


def reconciled(ledger: Path, store: Path) -> list[Line]:
    """All lines of the ledger and of its copy in `store`; lines that one of them lacks are added.

    `dvc exp apply`, `git stash` and the like restore an older file: the copy keeps the lines.

    Raises BoundaryError when one was tampered with, when neither is the beginning of the other, or
    when another process holds the lock too long.
    """
    with _held(store):
        return _reconciled(ledger, store / ledger.name)


@contextmanager
def _held(store: Path) -> Iterator[None]:
    lock = FileLock(store / _LOCK)
    try:
        lock.acquire(timeout=PATIENCE_SECONDS)
    except Timeout:
        raise BoundaryError(
            f"another process has held {store / _LOCK} for {PATIENCE_SECONDS:g} seconds; let it "
            "finish or end it, and run the same command again"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _reconciled(ledger: Path, copy: Path) -> list[Line]:
    here = read(ledger)
    kept = _read(copy, f"it is a copy of {ledger}; delete it if git has that file in full")
    common = min(len(here), len(kept))
    if here[:common] != kept[:common]:
        raise BoundaryError(
            f"{ledger} and its copy {copy} record different test evaluations; restore the lines "
            "that are missing, or delete the copy if what git has is complete"
        )
    _append(ledger, kept[common:])
    _append(copy, here[common:])
    return max(here, kept, key=len)


def _missing(file: Path, here: list[Line], lines: list[Line]) -> list[Line]:
    if here != lines[: len(here)]:
        raise BoundaryError(
            f"{file} records test evaluations that the project's ledger lacks; start the "
            "experiment again from a commit whose ledger is the beginning of the project's"
        )
    return lines[len(here) :]


def _append(file: Path, lines: list[Line]) -> None:
    """Add lines in place: behind the sandbox a new file in this folder could not be read back."""
    if not lines:
        return
    unended = file.exists() and file.read_bytes()[-1:] not in (b"", b"\n")
    text = "\n" * unended + "".join(_text(line) + "\n" for line in lines)
    with file.open("a", encoding="utf-8", newline="\n") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())


def read(ledger: Path) -> list[Line]:
    """All lines, verified; none when there is no file.

    Raises BoundaryError naming the first line that is damaged or does not follow the one before.
    """
    return _read(ledger, "restore the file with git")


def _read(ledger: Path, advice: str) -> list[Line]:
    content = ledger.read_bytes() if ledger.exists() else b""
    texts = content.removesuffix(b"\n").split(b"\n") if content else []
    return list(_verified(ledger, texts, advice))


def _verified(ledger: Path, texts: list[bytes], advice: str) -> Iterator[Line]:
    previous, evaluations = _FIRST, dict[str, int]()
    for number, text in enumerate(texts, start=1):
        complaint = None
        try:
            line: Line = json.loads(text.decode("utf-8"))
            content = {key: value for key, value in line.items() if key != "sha256"}
            corpus = line["corpus_sha256"]
            evaluations[corpus] = evaluations.get(corpus, 0) + 1
            if line["sha256"] != _digest(content) or text.decode() != _text(line):
                complaint = "was changed after it was written"
            elif line["previous"] != previous or number_of(line) != evaluations[corpus]:
                complaint = "does not follow the line before it"
        except UnicodeDecodeError as problem:
            complaint = f"is not UTF-8 from its byte {problem.start + 1} on"
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            complaint = "is damaged"
        if complaint:
            shown = text[:60].decode("utf-8", "backslashreplace")
            raise BoundaryError(
                f"{ledger} line {number} {complaint}: {shown!r}…; test evaluations cannot be "
                f"counted, so {advice}"
            )
        previous = line["sha256"]
        yield line


def number_of(line: Mapping[str, Any]) -> int:
    """How many test evaluations of its split a line makes; older lines call it `look`."""
    number: int = line["evaluation"] if "evaluation" in line else line["look"]
    return number


def confirm(lines: Iterable[Line], figures: Mapping[str, Any], source: object) -> Line:
    """The line that test figures belong to.

    figures: some keys of a line, with their values; the loss in nats is one of them.
    source: where the figures are, for the message.

    Raises BoundaryError when there is no such line.
    """
    for line in lines:
        if all(line.get(key) == value for key, value in figures.items()):
            return line
    raise BoundaryError(
        f"{source} has a test loss of {figures['loss_nats']!r} nats that no line of the ledger "
        f"records (model {str(figures.get('model_sha256'))[:12]}…); commit ledger.jsonl together "
        "with the figures, or run `dvc repro --force --single-item evaluate-test`"
    )


def _is_same(line: Line, evaluation: Mapping[str, Any]) -> bool:
    return all(line[key] == evaluation[key] for key in _SUBJECT)


def _text(line: Line) -> str:
    return json.dumps(line, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _digest(content: Line) -> str:
    return hashlib.sha256(_text(content).encode()).hexdigest()
