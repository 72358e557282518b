"""Looks at test are counted once each, in order, and no line can be changed unnoticed."""

import json
import multiprocessing
from pathlib import Path

import pytest

from neural_ngram.errors import BoundaryError
from neural_ngram.ledger import Look, read, reconciled, record


def look(model: str = "m", corpus: str = "c", **changed) -> Look:
    given = {
        "time": "2026-01-02T03:04:05+00:00",
        "commit": None,
        "model_sha256": model,
        "tokenizer_sha256": "t",
        "corpus_sha256": corpus,
        "loss_nats": 1.25,
        "tokens": 7,
    }
    return Look(**{**given, **changed})


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def enter(ledger: Path, given: Look) -> int:
    store = ledger.parent / "store"
    store.mkdir(exist_ok=True)
    return record(ledger, given, store)


def test_looks_are_numbered_for_each_split_and_the_same_one_is_not_entered_twice(ledger: Path):
    assert [enter(ledger, look(model)) for model in "aba"] == [1, 2, 1]
    assert enter(ledger, look("a", corpus="other")) == 1
    assert enter(ledger, look("a", tokenizer_sha256="u")) == 3
    assert [line["look"] for line in read(ledger)] == [1, 2, 1, 3]
    assert len(ledger.read_text().splitlines()) == 4


def test_each_line_carries_the_hash_of_the_one_before(ledger: Path):
    for model in "abc":
        enter(ledger, look(model))
    lines = read(ledger)
    assert lines[0]["previous"] == "0" * 64
    assert [line["previous"] for line in lines[1:]] == [line["sha256"] for line in lines[:-1]]


def changed(lines: list[str], number: int, **keys) -> list[str]:
    line = json.dumps(json.loads(lines[number]) | keys, sort_keys=True)
    return [*lines[:number], line, *lines[number + 1 :]]


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (lambda lines: changed(lines, 0, loss_nats=1.0), "line 1 was changed"),
        (lambda lines: changed(lines, 2, look=1), "line 3 was changed"),
        (lambda lines: [lines[0], lines[2]], "line 2 does not follow"),
        (lambda lines: lines[1:], "line 1 does not follow"),
        (lambda lines: [lines[1], lines[0], lines[2]], "line 1 does not follow"),
        (lambda lines: [*lines, lines[2]], "line 4 does not follow"),
        (lambda lines: [lines[0], lines[1][:40]], "line 2 is damaged"),
        (lambda lines: ["[]", *lines], "line 1 is damaged"),
        (lambda lines: ["", *lines], "line 1 is damaged"),
        (lambda lines: [lines[0].replace(",", ", ", 1)], "line 1 was changed"),
    ],
)
def test_tampering_is_found_and_nothing_more_is_entered(ledger: Path, tamper, told: str):
    for model in "abc":
        enter(ledger, look(model))
    before = "\n".join(tamper(ledger.read_text().splitlines())) + "\n"
    ledger.write_text(before)
    with pytest.raises(BoundaryError, match=told):
        enter(ledger, look("d"))
    assert ledger.read_text() == before


def test_an_older_file_put_back_loses_no_look(ledger: Path):
    for model in "ab":
        enter(ledger, look(model))
    first, second = ledger.read_text().splitlines(keepends=True)
    ledger.write_text(first)
    assert enter(ledger, look("c")) == 3
    assert ledger.read_text().startswith(first + second)
    ledger.unlink()
    assert len(reconciled(ledger, ledger.parent / "store")) == 3
    assert len(read(ledger)) == 3


def test_looks_that_came_with_git_are_taken_over(ledger: Path, tmp_path: Path):
    enter(ledger, look("a"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "ledger.jsonl").write_text(ledger.read_text())
    assert enter(elsewhere / "ledger.jsonl", look("b")) == 2
    assert len(read(elsewhere / "store/ledger.jsonl")) == 2


def test_a_ledger_that_grew_in_two_places_is_refused(ledger: Path, tmp_path: Path):
    enter(ledger, look("a"))
    other = tmp_path / "other"
    other.mkdir()
    enter(other / "ledger.jsonl", look("b"))
    ledger.write_text((other / "ledger.jsonl").read_text())
    with pytest.raises(BoundaryError, match="tell of different looks"):
        enter(ledger, look("c"))


def test_an_empty_or_missing_ledger_holds_no_looks(ledger: Path):
    assert read(ledger) == []
    ledger.touch()
    assert read(ledger) == []


def test_processes_that_look_at_once_each_get_a_number(ledger: Path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        given = [(ledger, look(str(n))) for n in range(12)]
        numbers = pool.starmap(enter, given)
    assert sorted(numbers) == list(range(1, 13))
    assert len(read(ledger)) == 12
