"""A training stage that is killed goes on when it is run again; the outputs are the same bytes."""

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from patience import PATIENCE, wait_for

OUTPUTS = (
    *("artifacts/model/model.safetensors", "artifacts/training/batches.csv"),
    *("artifacts/training/evaluations.csv", "artifacts/generation/samples.json"),
)
LONG = ("training.max_steps=3000", "training.evaluate_every=1000", "training.checkpoint_every=100")


def copy_of(pipeline, folder: Path):
    """The project where everything has run but training, and no model is left."""
    shutil.copytree(pipeline.folder, folder / "copy", symlinks=True)
    project = type(pipeline)(folder / "copy")
    for name in ("artifacts/model", "artifacts/training", "artifacts/generation"):
        shutil.rmtree(project.folder / name)
    return project


def outputs(project) -> dict[str, bytes]:
    done = project.stage("generate", *LONG)
    assert done.returncode == 0, done.stderr
    return {name: (project.folder / name).read_bytes() for name in OUTPUTS}


def every_run(project) -> list[Run]:
    """All MLflow runs; one is there before its parameters are."""
    client = MlflowClient(f"sqlite:///{project.folder / 'runs/mlflow.db'}")
    experiment = client.get_experiment_by_name("neural-ngram")
    return list(client.search_runs([experiment.experiment_id]))


def runs(project) -> list[Run]:
    """The MLflow runs of the long training."""
    return [run for run in every_run(project) if run.data.params["training.max_steps"] == "3000"]


def checkpoints(project) -> list[Path]:
    return list((project.folder / "runs/checkpoints").glob("*/step-*"))


def killed(project, moment: Callable[[], bool], number: int = signal.SIGKILL) -> str:
    """Start the training, send it a signal once `moment` has come; what it said."""
    process = subprocess.Popen(
        [sys.executable, "-m", "neural_ngram.stages.train", *LONG],
        cwd=project.folder,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while process.poll() is None and not moment():
        time.sleep(0.002)
    process.send_signal(number)
    said, _ = process.communicate(timeout=PATIENCE)
    return said


@pytest.fixture(scope="module")
def expected(pipeline, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    project = copy_of(pipeline, tmp_path_factory.mktemp("uninterrupted"))
    done = project.stage("train", *LONG)
    assert done.returncode == 0, done.stderr
    assert checkpoints(project) == []
    return outputs(project)


@pytest.mark.promise("reliability")
def test_a_killed_training_goes_on_in_its_run(pipeline, tmp_path: Path, expected):
    project = copy_of(pipeline, tmp_path)
    killed(project, lambda: bool(checkpoints(project)))
    before = sent(project)
    done = project.stage("train", *LONG)
    assert done.returncode == 0, done.stderr
    assert "resuming after step" in done.stdout
    assert outputs(project) == expected
    assert not list((project.folder / "runs/checkpoints").iterdir())
    (after,) = runs(project)
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "FINISHED")
    client = MlflowClient(f"sqlite:///{project.folder / 'runs/mlflow.db'}")
    history = client.get_metric_history(after.info.run_id, "batch.loss_nats")
    assert [metric.step for metric in history] == list(range(1, 3001))


def sent(project) -> Run:
    """The run of a killed training once everything that was measured has arrived."""

    def arrived() -> bool:
        stored = (project.folder / "runs/mlflow.db").exists()
        return stored and any(run.info.status == "KILLED" for run in every_run(project))

    wait_for(arrived, "the run in MLflow")
    return runs(project)[0]


@pytest.mark.promise("reliability")
def test_other_settings_start_afresh_and_say_what_differs(pipeline, tmp_path: Path):
    project = copy_of(pipeline, tmp_path)
    killed(project, lambda: bool(checkpoints(project)))
    done = project.stage("train", *LONG, "training.max_steps=10")
    assert done.returncode == 0, done.stderr
    assert "training.max_steps is 3000 there and 10 here" in done.stdout
    assert checkpoints(project)


@pytest.mark.promise("reliability")
@pytest.mark.slow
def test_twenty_kills_of_the_stage_change_no_byte(pipeline, tmp_path: Path, expected):
    project = copy_of(pipeline, tmp_path)
    generator, start = random.Random(20), time.monotonic()
    assert project.stage("train", *LONG, "training.seed=1").returncode == 0
    duration = time.monotonic() - start
    for _ in range(20):
        end = time.monotonic() + generator.uniform(0, duration)
        killed(project, lambda end=end: time.monotonic() > end)
    done = project.stage("train", *LONG)
    assert done.returncode == 0, done.stderr
    assert outputs(project) == expected
    found = [run for run in runs(project) if run.data.params["training.seed"] == "23"]
    assert [run.info.status for run in found] == ["FINISHED"]
