"""An interrupted training goes on to the same bits; what is no checkpoint of it is refused."""

import math
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from patience import PATIENCE

from neural_ngram.artifacts import read_tensors, write_tensors
from neural_ngram.errors import ArtifactError, TrainingError
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import Model, initialise
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, OptimizerSettings, Settings, TrainingSettings
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.checkpoints import Checkpoints, State, difference
from neural_ngram.training.gradients.closed_form import ClosedForm
from neural_ngram.training.loop import Record, resume, train

IDENTITY = {"settings": {"training.seed": 23}, "data": {"train": "ab"}, "code": {"torch": "2"}}


pytestmark = pytest.mark.usefixtures("one_thread")


def windows(size: int, seed: int) -> Windows:
    tokens = np.random.default_rng(seed).integers(0, 30, size).astype(np.uint8)
    offsets = np.array([0, size // 2, size])
    return Windows(tokens=tokens, offsets=offsets, context_length=3)


WINDOWS = {"train": windows(700, 1), "validation": windows(300, 2)}


def settings(model: dict | None = None, optimizer: dict | None = None, **training) -> Settings:
    base = {"batch_size": 32, "max_steps": 90, "evaluate_every": 20, "checkpoint_every": 7}
    return Settings(
        model=ModelSettings(embedding_width=6, hidden_width=10, **(model or {})),
        optimizer=OptimizerSettings(**(optimizer or {})),
        training=TrainingSettings(**base | training),
    )


def fresh(chosen: Settings) -> Model:
    architecture = Architecture(vocabulary_size=30, context_length=3, settings=chosen.model)
    dtype = getattr(torch, chosen.training.dtype)
    return initialise(architecture, SplitMix64(chosen.training.seed), dtype)


def uninterrupted(chosen: Settings) -> tuple[bytes, Record]:
    model = fresh(chosen)
    record = train(model, WINDOWS, chosen.optimizer, chosen.training)
    return model.flat.numpy().tobytes(), record


class StoppedError(Exception):
    pass


def stop_at(step: int) -> Callable[[Record], None]:
    def watch(record: Record) -> None:
        if len(record.batch_losses) >= step:
            raise StoppedError

    return watch


def resumed(
    chosen: Settings, folder: Path, watch: Callable[[Record], None] = lambda _: None
) -> tuple[bytes, Record]:
    model = fresh(chosen)
    with Checkpoints(folder, IDENTITY, print).lock() as checkpoints:
        record = resume(model, WINDOWS, chosen, watch, checkpoints)
    return model.flat.numpy().tobytes(), record


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    "chosen",
    [
        settings(),
        settings(optimizer={"name": "sgd", "schedule": "step"}),
        settings(optimizer={"name": "adam", "schedule": "cosine", "weight_decay": 0.1}),
        settings(optimizer={"schedule": "inverse", "schedule_decay": 0.1}),
        settings(model={"hidden": "tanh", "dropout": 0.4}, sampling="replacement"),
        settings(sampling="sequential", averaging="ema", dtype="float64"),
        settings(averaging="ema", patience=3, optimizer={"learning_rate": 0.1}),
        settings(gradients="autograd", model={"freeze_embedding": True}),
        settings(batch_size=700),
    ],
    ids=lambda chosen: f"{chosen.optimizer.name}-{chosen.training.sampling}",
)
def test_a_resumed_training_ends_with_the_same_bits(chosen: Settings, tmp_path: Path):
    expected = uninterrupted(chosen)
    for step in (1, 20, 60, 61):
        with suppress(StoppedError):
            resumed(chosen, tmp_path, stop_at(step))
    assert resumed(chosen, tmp_path) == expected


@pytest.mark.promise("reliability")
def test_batches_that_share_contexts_are_resumed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("neural_ngram.training.batches.shares_contexts", lambda *_: True)
    test_a_resumed_training_ends_with_the_same_bits(settings(), tmp_path)


@pytest.mark.promise("reliability")
def test_patience_is_not_forgotten(tmp_path: Path):
    chosen = settings(patience=2, evaluate_every=7, optimizer={"learning_rate": 0.3})
    expected = uninterrupted(chosen)
    assert len(expected[1].batch_losses) < 90
    with suppress(StoppedError):
        resumed(chosen, tmp_path, stop_at(len(expected[1].batch_losses)))
    assert resumed(chosen, tmp_path) == expected


def state(step: int) -> State:
    arrays = {"weights": np.arange(9.0) + step, "steps": np.array(1.0, dtype=np.float32)}
    return State(step, arrays, (2**64 - 1, 4), 2**63)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def checkpoints(tmp_path: Path, told: list[str]):
    with Checkpoints(tmp_path, IDENTITY, told.append).lock() as kept:
        yield kept


def files(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in checkpoints.folder.glob("step-*"))


def test_a_checkpoint_comes_back_as_it_was(checkpoints: Checkpoints):
    checkpoints.write(state(5))
    found = checkpoints.latest()
    assert (found.step, found.position, found.dropout) == (5, (2**64 - 1, 4), 2**63)
    for name, array in state(5).arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (array.dtype, array.shape)


def test_two_are_kept_and_none_when_training_is_done(checkpoints: Checkpoints, tmp_path: Path):
    for step in (1, 2, 3, 10):
        checkpoints.write(state(step))
    assert files(checkpoints) == ["step-000000000003.safetensors", "step-000000000010.safetensors"]
    checkpoints.remove()
    assert files(checkpoints) == []


@pytest.mark.promise("reliability")
def test_nothing_is_left_of_a_training_that_is_done(tmp_path: Path):
    with Checkpoints(tmp_path, IDENTITY, print).lock() as kept:
        kept.write(state(1))
        kept.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_survives_the_process(tmp_path: Path):
    with Checkpoints(tmp_path, IDENTITY, print).lock() as kept:
        kept.write(state(1))
    with Checkpoints(tmp_path, IDENTITY, print).lock() as kept:
        assert kept.latest().step == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def promise_too_much(path: Path) -> None:
    path.write_bytes((2**62).to_bytes(8, "little") + path.read_bytes()[8:])


def replace_by_a_model(path: Path) -> None:
    write_tensors(path, {"embedding": np.zeros(3)}, {"architecture": {}})


def replace_by_nonsense(path: Path) -> None:
    write_tensors(path, {"weights": np.zeros(3)}, {"identity": [1], "position": 3})


def described(**other: object) -> Callable[[Path], None]:
    """Damage to what the file says of itself."""

    def damage(path: Path) -> None:
        arrays, description = read_tensors(path)
        write_tensors(path, arrays, description | other)

    return damage


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    "damage",
    [
        *(cut, empty, flip_a_bit, promise_too_much, replace_by_a_model, replace_by_nonsense),
        *(described(step=7), described(step="2"), described(step=None)),
        *(described(position=(2**64 - 1, 5)), described(position=[4]), described(position="45")),
        *(described(position=(2**64 - 1, 4, 0)), described(dropout=2**63 + 1)),
        *(described(identity=IDENTITY | {"data": {"train": "aj"}}), described(sha256=3)),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(
    checkpoints: Checkpoints, told: list[str], damage: Callable[[Path], None]
):
    checkpoints.write(state(1))
    checkpoints.write(state(2))
    newest = checkpoints.folder / "step-000000000002.safetensors"
    damage(newest)
    assert checkpoints.latest().step == 1
    assert told[0].startswith(f"{newest} is damaged and deleted (")
    assert "resuming after step 1 from " in told[1]


def test_a_change_of_any_byte_of_a_checkpoint_is_noticed(checkpoints: Checkpoints, told: list[str]):
    checkpoints.write(state(2))
    (path,) = checkpoints.folder.glob("step-*")
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert checkpoints.latest() is None
    assert len(told) == len(content)


def test_when_all_are_damaged_training_starts_afresh(checkpoints: Checkpoints, told: list[str]):
    checkpoints.write(state(1))
    empty(checkpoints.folder / files(checkpoints)[0])
    assert checkpoints.latest() is None
    assert len(told) == 1


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"settings": {"training.seed": 24}}, "training.seed is 24 there and 23 here"),
        ({"data": {"train": "cd"}}, "data train is cd there and ab here"),
        ({"code": {"torch": "3"}}, "code torch is 3 there and 2 here"),
        ({"data": {}, "code": {}}, "code torch is None there and 2 here, and 1 more differ"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused_and_the_difference_named(
    checkpoints: Checkpoints, told: list[str], tmp_path: Path, other: dict, named: str
):
    with Checkpoints(tmp_path, IDENTITY | other, print).lock() as foreign:
        foreign.write(state(8))
    assert checkpoints.latest() is None
    assert named in told[0]
    (path,) = foreign.folder.glob("step-*")
    placed = checkpoints.folder / path.name
    path.rename(placed)
    with pytest.raises(ArtifactError) as caught:
        checkpoints.latest()
    assert str(caught.value).startswith(f"{placed} is the checkpoint of another training: ")
    assert named in str(caught.value)


def test_equal_identities_do_not_differ():
    assert difference(IDENTITY, IDENTITY) == ""


@pytest.mark.promise("reliability")
def test_two_processes_that_train_the_same_do_not_meet(
    tmp_path: Path, told: list[str], monkeypatch
):
    with Checkpoints(tmp_path, IDENTITY, print).lock() as first:
        first.write(state(4))
        Clock(math.inf, first.remove).rule(monkeypatch)
        with Checkpoints(tmp_path, IDENTITY, told.append).lock() as second:
            assert second.key is None
            assert second.latest() is None
            second.write(state(9))
            second.remove()
        assert first.latest().step == 4
    assert told == ["another process is running this training; checkpoints are disabled here"]


def test_what_others_left_is_told_from_what_they_are_at(checkpoints: Checkpoints, tmp_path: Path):
    left = Checkpoints(tmp_path, IDENTITY | {"data": {"train": "left"}}, print)
    busy = Checkpoints(tmp_path, IDENTITY | {"data": {"train": "busy"}}, print)
    with left.lock():
        left.write(state(1))
    with busy.lock():
        assert checkpoints.abandoned() == {left.folder.name}


def test_a_damaged_description_of_another_training_hinders_none(tmp_path: Path, told: list[str]):
    left = Checkpoints(tmp_path, IDENTITY | {"data": {"train": "left"}}, print)
    with left.lock():
        left.write(state(1))
        (left.folder / "identity.json").write_text("{")
    with Checkpoints(tmp_path, IDENTITY, told.append).lock() as mine:
        assert mine.latest() is None
    assert "is of another" in told[0]
    assert "identity.json cannot be read" in told[0]


class Clock:
    """The time that waiting for a lock takes: it stands still but while somebody sleeps.

    alarm: called once that many seconds have gone by.
    """

    def __init__(self, seconds: float, alarm: Callable[[], object]) -> None:
        self.now, self.seconds, self.alarm = 0.0, seconds, alarm

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.seconds:
            self.alarm()

    def rule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("time.sleep", self.sleep)
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


@pytest.mark.promise("reliability")
def test_who_looks_whether_a_training_is_abandoned_does_not_take_its_checkpoints(
    tmp_path: Path, told: list[str], monkeypatch
):
    mine = Checkpoints(tmp_path, IDENTITY, told.append)
    looking = FileLock(mine.folder / "lock")
    looking.acquire()
    Clock(0.2, looking.release).rule(monkeypatch)
    with mine.lock():
        assert mine.key == mine.folder.name
    assert told == []


@pytest.mark.promise("reliability")
def test_a_training_keeps_checkpoints_when_another_of_it_ends_as_it_starts(
    tmp_path: Path, told: list[str], monkeypatch
):
    first, second = (Checkpoints(tmp_path, IDENTITY, told.append) for _ in range(2))
    other = ExitStack()
    other.enter_context(first.lock())
    Clock(0.2, other.close).rule(monkeypatch)
    with second.lock():
        second.write(state(4))
        assert second.latest().step == 4
    assert told == [f"resuming after step 4 from {second.folder}/step-000000000004.safetensors"]


def test_who_looks_at_folders_without_a_lock_leaves_them_alone(
    checkpoints: Checkpoints, tmp_path: Path, monkeypatch
):
    just_removed, just_made = tmp_path / "removed", tmp_path / "made"
    just_made.mkdir()
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([just_removed, just_made]))
    assert checkpoints.abandoned() == set()
    assert not just_removed.exists()
    assert not (just_made / "lock").exists()


def test_a_checkpoint_says_nothing_in_a_foreign_language(checkpoints: Checkpoints):
    checkpoints.write(state(1))
    _, description = read_tensors(checkpoints.folder / files(checkpoints)[0])
    assert set(description) == {"identity", "step", "position", "dropout", "sha256"}


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("rate", [30.0, 3e4, 1e30])
def test_a_training_that_diverges_keeps_its_last_good_checkpoint(
    checkpoints: Checkpoints, rate: float
):
    chosen = settings(
        optimizer={"name": "sgd", "learning_rate": rate}, checkpoint_every=1, evaluate_every=1000
    )
    with pytest.raises(TrainingError) as caught:
        resume(fresh(chosen), WINDOWS, chosen, lambda _: None, checkpoints)
    told = str(caught.value)
    assert re.match(r"(the (loss of|gradient of \w+ in)|\w+ after) step \d+ is -?(nan|inf): ", told)
    assert f"lower optimizer.learning_rate (now {rate:g}); it was batch " in told
    kept = checkpoints.newest()
    assert told.endswith(f"; the last good weights are in {kept}" if kept else "the windows")
    for path in checkpoints.folder.glob("step-*"):
        assert np.isfinite(read_tensors(path)[0]["weights"]).all()
    if rate < 1e4:
        assert len(files(checkpoints)) == 2


@pytest.mark.promise("reliability")
def test_the_batch_that_diverges_is_named_by_its_number_in_the_epoch(monkeypatch):
    chosen = settings(evaluate_every=1000, optimizer={"learning_rate": 0.5})
    calls, gradients = 0, ClosedForm.__call__

    def broken(self, batch, masks=()) -> float:
        nonlocal calls
        calls += 1
        return math.nan if calls == 25 else gradients(self, batch, masks)

    monkeypatch.setattr(ClosedForm, "__call__", broken)
    with pytest.raises(TrainingError, match=r"loss of step 25 is nan.*it was batch 3 of its pass"):
        train(fresh(chosen), WINDOWS, chosen.optimizer, chosen.training)


# Below: this file as a program, which trains in forked children and kills them.

UNDER_FIRE = settings(
    max_steps=1200, evaluate_every=100, checkpoint_every=10, averaging="ema", model={"dropout": 0.1}
)


def kill_halfway(path: Path, content: bytes) -> int:
    with path.open("wb") as handle:
        handle.write(content[: len(content) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def kill_before_rename(path: Path, target: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def count_calls(limit: float = math.inf) -> Callable[[], int]:
    """A clock that no busy machine slows down: calls and returns, also of compiled functions.

    The process kills itself at number `limit`.
    """
    calls = 0

    def tick(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls >= limit:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(tick)
    return lambda: calls


def child(folder: Path, prepare: Callable[[], object]) -> int:
    """The process ID of a forked child that trains."""
    process = os.fork()
    if process:
        return process
    prepare()
    weights, record = resumed(UNDER_FIRE, folder / "checkpoints")
    (folder / "weights").write_bytes(weights)
    (folder / "record").write_text(repr(record))
    os._exit(0)


def under_fire(folder: Path, kills: int) -> None:
    """Kill so many children at random calls, two more in a write; the last one may finish."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    torch.set_num_threads(1)
    calls = count_calls()
    weights, record = uninterrupted(UNDER_FIRE)
    sys.setprofile(None)
    generator, killed = random.Random(20), 0
    for _ in range(kills):
        moment = generator.randrange(1, 2 * calls() // kills)
        process = child(folder, lambda moment=moment: count_calls(moment))
        killed += os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -9
    for name, fault in (("write_bytes", kill_halfway), ("replace", kill_before_rename)):
        process = child(folder, lambda name=name, fault=fault: setattr(Path, name, fault))
        killed += os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -9
    os.waitpid(child(folder, lambda: None), 0)
    same = (folder / "weights").read_bytes() == weights
    same &= (folder / "record").read_text() == repr(record)
    print(f"killed {killed}, {'same' if same else 'DIFFERENT'}", file=sys.stderr)


@pytest.mark.promise("reliability")
def test_twenty_kills_at_random_moments_change_no_bit(tmp_path: Path):
    command = [sys.executable, __file__, str(tmp_path), "18"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.stderr.strip() == "killed 20, same"


if __name__ == "__main__":
    under_fire(Path(sys.argv[1]), int(sys.argv[2]))
