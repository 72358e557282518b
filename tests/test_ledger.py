"""Test evaluations are counted once each, in order, and no line can be changed unnoticed."""

import json
import multiprocessing
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline import ledger as ledgers
from neural_ngram.pipeline.ledger import Evaluation, confirm, number_of, read, reconciled, record


def scored(model: str = "m", corpus: str = "c", **changed) -> Evaluation:
    given = {
        "time": "2026-01-02T03:04:05+00:00",
        "commit": None,
        "model_sha256": model,
        "tokenizer_sha256": "t",
        "corpus_sha256": corpus,
        "loss_nats": 1.25,
        "tokens": 7,
    }
    return Evaluation(**{**given, **changed})


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def enter(ledger: Path, given: Evaluation) -> int:
    store = ledger.parent / "store"
    store.mkdir(exist_ok=True)
    return number_of(record(ledger, given, store))


def test_evaluations_are_numbered_for_each_split_and_the_same_one_is_not_entered_twice(
    ledger: Path,
):
    assert [enter(ledger, scored(model)) for model in "aba"] == [1, 2, 1]
    assert enter(ledger, scored("a", corpus="other")) == 1
    assert enter(ledger, scored("a", tokenizer_sha256="u")) == 3
    assert [line["evaluation"] for line in read(ledger)] == [1, 2, 1, 3]
    assert len(ledger.read_text().splitlines()) == 4


def test_each_line_carries_the_hash_of_the_one_before(ledger: Path):
    for model in "abc":
        enter(ledger, scored(model))
    lines = read(ledger)
    assert lines[0]["previous"] == "0" * 64
    assert [line["previous"] for line in lines[1:]] == [line["sha256"] for line in lines[:-1]]


def changed(lines: list[str], number: int, **keys) -> list[str]:
    line = json.dumps(json.loads(lines[number]) | keys, sort_keys=True)
    return [*lines[:number], line, *lines[number + 1 :]]


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (lambda lines: changed(lines, 0, loss_nats=1.0), "line 1 was changed"),
        (lambda lines: changed(lines, 2, evaluation=1), "line 3 was changed"),
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
        enter(ledger, scored(model))
    before = "\n".join(tamper(ledger.read_text().splitlines())) + "\n"
    ledger.write_text(before)
    with pytest.raises(BoundaryError, match=told):
        enter(ledger, scored("d"))
    assert ledger.read_text() == before


def test_an_older_file_put_back_loses_no_line(ledger: Path):
    for model in "ab":
        enter(ledger, scored(model))
    first, second = ledger.read_text().splitlines(keepends=True)
    ledger.write_text(first)
    assert enter(ledger, scored("c")) == 3
    assert ledger.read_text().startswith(first + second)
    ledger.unlink()
    assert len(reconciled(ledger, ledger.parent / "store")) == 3
    assert len(read(ledger)) == 3


def test_lines_that_came_with_git_are_taken_over(ledger: Path, tmp_path: Path):
    enter(ledger, scored("a"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "ledger.jsonl").write_text(ledger.read_text())
    assert enter(elsewhere / "ledger.jsonl", scored("b")) == 2
    assert len(read(elsewhere / "store/ledger.jsonl")) == 2


def test_a_ledger_that_grew_in_two_places_is_refused(ledger: Path, tmp_path: Path):
    enter(ledger, scored("a"))
    other = tmp_path / "other"
    other.mkdir()
    enter(other / "ledger.jsonl", scored("b"))
    ledger.write_text((other / "ledger.jsonl").read_text())
    with pytest.raises(BoundaryError, match="record different test evaluations"):
        enter(ledger, scored("c"))


def test_an_empty_or_missing_ledger_holds_no_lines(ledger: Path):
    assert read(ledger) == []
    ledger.touch()
    assert read(ledger) == []


@pytest.mark.promise("reliability")
def test_processes_that_record_at_once_each_get_a_number(ledger: Path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        given = [(ledger, scored(str(n))) for n in range(12)]
        numbers = pool.starmap(enter, given)
    assert sorted(numbers) == list(range(1, 13))
    assert len(read(ledger)) == 12


@pytest.mark.promise("reliability")
def test_a_last_line_without_its_end_is_ended_before_the_next(ledger: Path):
    enter(ledger, scored("a"))
    for file in (ledger, ledger.parent / "store/ledger.jsonl"):
        file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert enter(ledger, scored("b")) == 2
    assert len(read(ledger)) == len(read(ledger.parent / "store/ledger.jsonl")) == 2
    assert ledger.read_bytes().endswith(b"}\n")


@pytest.mark.promise("reliability")
def test_a_line_that_is_not_utf_8_is_named_with_the_byte(ledger: Path):
    for model in "ab":
        enter(ledger, scored(model))
    first, second = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + second[:7] + b"\xff" + second[8:])
    with pytest.raises(BoundaryError, match=r"line 2 is not UTF-8 from its byte 8 on.*with git"):
        read(ledger)


@pytest.mark.promise("reliability")
def test_a_damaged_copy_is_to_be_deleted_and_is_not_put_down_to_git(ledger: Path):
    enter(ledger, scored("a"))
    copy = ledger.parent / "store/ledger.jsonl"
    copy.write_text("damaged\n")
    with pytest.raises(BoundaryError, match="line 1 is damaged") as caught:
        enter(ledger, scored("b"))
    assert str(copy) in str(caught.value)
    assert "delete it if git has that file in full" in str(caught.value)
    copy.unlink()
    assert enter(ledger, scored("b")) == 2


@pytest.mark.promise("reliability")
def test_a_lock_that_is_held_is_named_after_a_while(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ledgers, "PATIENCE_SECONDS", 0.01)
    enter(ledger, scored("a"))
    with (
        FileLock(ledger.parent / "store/.ledger.lock"),
        pytest.raises(BoundaryError, match=r"another process has held .*\.ledger\.lock for 0.01 s"),
    ):
        enter(ledger, scored("b"))
    assert enter(ledger, scored("b")) == 2


def test_lines_of_older_versions_count(ledger: Path):
    root = Path(__file__).parents[1]
    shutil.copy(root / "ledger.jsonl", ledger)
    (known,) = {line["corpus_sha256"] for line in read(ledger) if "look" in line}
    assert enter(ledger, scored("new", corpus=known)) == len(read(root / "ledger.jsonl")) + 1
    assert "look" not in read(ledger)[-1]


def test_a_temporary_experiment_gets_all_lines_in_its_own_folder(ledger: Path, tmp_path: Path):
    enter(ledger, scored("a"))
    (tmp_path / "temporary").mkdir()
    working = tmp_path / "temporary/ledger.jsonl"
    record(ledger, scored("b"), tmp_path / "store", working)
    assert working.read_text() == ledger.read_text()
    record(ledger, scored("b"), tmp_path / "store", working)
    assert working.read_text() == ledger.read_text()


def test_a_temporary_experiment_with_lines_of_its_own_is_refused(ledger: Path, tmp_path: Path):
    (tmp_path / "temporary/store").mkdir(parents=True)
    working = tmp_path / "temporary/ledger.jsonl"
    record(working, scored("other"), working.parent / "store")
    (tmp_path / "store").mkdir()
    with pytest.raises(BoundaryError, match="that the project's ledger lacks"):
        record(ledger, scored("a"), tmp_path / "store", working)


def test_a_figure_is_confirmed_by_its_line_alone(ledger: Path):
    enter(ledger, scored("a"))
    lines = read(ledger)
    assert confirm(lines, {"model_sha256": "a", "loss_nats": 1.25}, "f.json") == lines[0]
    for wrong in ({"model_sha256": "b"}, {"loss_nats": 1.0}, {"tokens": 8}):
        with pytest.raises(BoundaryError, match=r"f\.json has a test loss of .* no line of the"):
            confirm(lines, {"model_sha256": "a", "loss_nats": 1.25} | wrong, "f.json")
