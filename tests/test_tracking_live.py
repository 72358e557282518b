"""A run reaches MLflow while it is written; whatever happens to its writer, nothing is lost."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient
from patience import wait_for

from neural_ngram.settings import OptimizerSettings, Settings, TrainingSettings
from neural_ngram.tracking.run import start_run
from neural_ngram.tracking.sending import synchronise
from neural_ngram.training.live import live
from neural_ngram.training.loop import Evaluation, Record


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DVC_ROOT", str(folder))
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        with start_run("first", {}):
            pass
        yield folder


def query(folder: Path, statement: str, *values: object) -> list[tuple]:
    database = f"{(folder / 'runs/mlflow.db').as_uri()}?mode=ro"
    with closing(sqlite3.connect(database, uri=True)) as connection:
        return connection.execute(statement, values).fetchall()


def steps(folder: Path, run: str, metric: str = "batch.loss_nats") -> list[int]:
    statement = (
        "SELECT step FROM metrics JOIN runs USING (run_uuid) WHERE name = ? AND key = ? "
        "ORDER BY step"
    )
    return [step for (step,) in query(folder, statement, run, metric)]


def status(folder: Path, run: str) -> list[str]:
    return [found for (found,) in query(folder, "SELECT status FROM runs WHERE name = ?", run)]


def eventually(holds: Callable[[], bool]) -> None:
    wait_for(holds, "what the run was told")


def entries(folder: Path) -> list[Path]:
    return list((folder / "runs/spool").iterdir())


@pytest.mark.promise("reliability")
def test_what_is_told_arrives_while_the_run_goes_on(store: Path):
    with start_run("live", {"a": 1}, "live", live=True) as run:
        run.curve("batch.loss_nats", 1, [3.0, 2.0])
        eventually(lambda: steps(store, "live") == [1, 2])
        assert status(store, "live") == ["RUNNING"]
        run.curve("batch.loss_nats", 3, [1.0])
        eventually(lambda: steps(store, "live") == [1, 2, 3])
        run.metric("train.loss_nats", 1.0, 3)
    assert steps(store, "live", "train.loss_nats") == [3]
    assert status(store, "live") == ["FINISHED"]
    assert entries(store) == []


KILLED = """
import os, signal, sys
from neural_ngram.tracking.run import start_run
with start_run(sys.argv[1], {}, sys.argv[1], live=True) as run:
    run.curve("batch.loss_nats", 1, [3.0, 2.0])
    print(run.sender.process.pid, flush=True)
    sys.stdin.readline()
    run.curve("batch.loss_nats", 3, [1.0])
    os.kill(os.getpid(), signal.SIGKILL)
"""


def start_writer(name: str) -> tuple[subprocess.Popen[str], int]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writer = subprocess.Popen([sys.executable, "-c", KILLED, name], **pipes)
    return writer, int(writer.stdout.readline())


@pytest.mark.promise("reliability")
def test_a_writer_that_is_killed_loses_nothing_and_its_run_is_killed(store: Path):
    writer, _ = start_writer("killed")
    writer.communicate("go on\n")
    assert writer.returncode == -signal.SIGKILL
    eventually(lambda: status(store, "killed") == ["KILLED"])
    assert steps(store, "killed") == [1, 2, 3]
    eventually(lambda: entries(store) == [])


@pytest.mark.promise("reliability")
def test_killed_together_with_its_sender_a_run_is_one_curve_when_it_goes_on(store: Path):
    writer, sender = start_writer("resumed")
    eventually(lambda: steps(store, "resumed") == [1, 2])
    os.kill(sender, signal.SIGKILL)
    writer.communicate("go on\n")
    assert steps(store, "resumed") == [1, 2]
    assert len(entries(store)) == 1
    with start_run("resumed", {}, "resumed", live=True) as run:
        run.curve("batch.loss_nats", 1, [3.0, 2.0, 1.0, 0.5])
    assert steps(store, "resumed") == [1, 2, 3, 4]
    assert status(store, "resumed") == ["FINISHED"]
    assert entries(store) == []


@pytest.mark.promise("reliability")
def test_a_store_that_is_down_is_told_once_and_gets_everything_later(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        with start_run("down", {}, "down", live=True) as run:
            run.curve("batch.loss_nats", 1, [3.0, 2.0])
            eventually(lambda: run.sender.failure() is not None)
            run.flush()
            (line,) = capsys.readouterr().err.splitlines()
            assert line.startswith("  warning: not sent to MLflow at http://127.0.0.1:9 (")
            run.curve("batch.loss_nats", 3, [1.0])
        assert capsys.readouterr().err == ""
    assert synchronise(print) == 1
    assert (steps(store, "down"), status(store, "down")) == ([1, 2, 3], ["FINISHED"])


@pytest.mark.promise("reliability")
def test_a_training_process_does_without_mlflow(store: Path):
    code = (
        "import sys\nfrom neural_ngram.tracking.run import start_run\n"
        "from neural_ngram.stages import train\n"
        "with start_run('without', {}, live=True) as run:\n"
        "    run.curve('batch.loss_nats', 1, [1.0])\n"
        "assert 'mlflow' not in sys.modules and 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert steps(store, "without") == [1]


class Told:
    """What a run was told, in order."""

    def __init__(self) -> None:
        self.events: list[tuple] = []

    def curve(self, name: str, first: int, values: list[float]) -> None:
        self.events.append((name, first, list(values)))

    def metric(self, name: str, value: float, step: int) -> None:
        self.events.append((name, value, step))

    def metrics(self, values: dict[str, float], step: int) -> None:
        self.events += [(name, value, step) for name, value in values.items()]

    def flush(self) -> None:
        self.events.append(("flush",))


@pytest.mark.promise("reliability")
def test_losses_rate_and_speed_are_told_every_two_seconds_and_at_evaluations():
    settings = Settings(
        training=TrainingSettings(max_steps=100),
        optimizer=OptimizerSettings(learning_rate=0.5, schedule="inverse", schedule_decay=1.0),
    )
    now, told, record = 0.0, Told(), Record()
    with live(told, settings, 10, lambda: now) as watch:
        watch(record)
        record.evaluations.append(Evaluation(0, 4.0, 5.0))
        now = 7.0  # an evaluation, which counts for no speed
        watch(record)
        assert told.events == [
            ("train.loss_nats", 4.0, 0),
            ("validation.loss_nats", 5.0, 0),
            ("flush",),
        ]
        told.events.clear()
        record.batch_losses += [3.0, 2.5]
        now = 8.0
        watch(record)
        assert told.events == []
        record.batch_losses += [2.0, 1.5]
        now = 9.0
        watch(record)
        assert told.events == [
            ("batch.loss_nats", 1, [3.0, 2.5, 2.0, 1.5]),
            ("learning_rate", 0.5 / 4, 4),
            ("tokens_per_second", 20.0, 4),
            ("flush",),
        ]
        told.events.clear()
        record.batch_losses.append(1.0)
    assert told.events == [("batch.loss_nats", 5, [1.0]), ("learning_rate", 0.1, 5), ("flush",)]


def test_a_run_that_mlflow_shows_live_has_its_curve_in_order(store: Path):
    client = MlflowClient(f"sqlite:///{store / 'runs/mlflow.db'}")
    with start_run("long", {}, live=True) as run:
        for first in range(1, 5001, 1250):
            run.curve("batch.loss_nats", first, [step / 2 for step in range(first, first + 1250)])
    (found,) = client.search_runs(["1"], "attributes.run_name = 'long'")
    history = client.get_metric_history(found.info.run_id, "batch.loss_nats")
    assert [(m.step, m.value) for m in history] == [(s, s / 2) for s in range(1, 5001)]
