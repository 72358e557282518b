"""Random experiments, killed at random moments, end in a consistent repository."""

import os
import random
import signal
import subprocess
import time

import pytest
import yaml
from mlflow import MlflowClient
from patience import PATIENCE

from neural_ngram.artifacts import sha256_of_file

MINUTES = float(os.environ.get("NEURAL_NGRAM_SOAK_MINUTES", "30"))
SEED = int(os.environ.get("NEURAL_NGRAM_SOAK_SEED", "1"))
CHOICES = {
    "training.max_steps": (200, 2000, 6000),
    "training.averaging": ("none", "ema"),
    "tokenizer.vocabulary_size": (280, 300),
    "windows.context_length": (2, 4),
    "model.hidden_width": (8, 16),
    "generation.temperature": (0, 0.5),
}
FIXED = ("training.evaluate_every=1000", "training.checkpoint_every=50")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def compose(project, generator: random.Random) -> None:
    """Settings of a random experiment."""
    chosen = [f"{name}={generator.choice(values)}" for name, values in CHOICES.items()]
    done = project.run("neural-ngram", "compose", *FIXED, *chosen)
    assert done.returncode == 0, done.stderr


def repro_and_kill(project, generator: random.Random) -> int:
    """`make repro`, and often a signal to all its processes at a random moment."""
    repaired = project.run("neural-ngram", "repair")
    assert repaired.returncode == 0, repaired.stderr
    process = subprocess.Popen(
        ["dvc", "repro"],
        cwd=project.folder,
        env=project.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=generator.uniform(1, 20))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, generator.choice(SIGNALS))
        return process.wait(timeout=PATIENCE)


def assert_consistent(project) -> None:
    assert project.run("neural-ngram", "repair").returncode == 0
    project.dvc("repro")
    assert "up to date" in project.dvc("status")
    lock = yaml.safe_load((project.folder / "dvc.lock").read_text())["stages"]
    params = yaml.safe_load((project.folder / "params.yaml").read_text())
    assert lock["train"]["params"]["params.yaml"]["training"] == params["training"]
    model = sha256_of_file(project.folder / "artifacts/model/model.safetensors")
    client = MlflowClient(f"sqlite:///{project.folder / 'runs/mlflow.db'}")
    runs = client.search_runs(["1"], f"tags.model_sha256 = '{model}'")
    assert [run.info.status for run in runs] == ["FINISHED"]
    steps = params["training"]["max_steps"]
    assert runs[0].data.params["training.max_steps"] == str(steps)
    history = client.get_metric_history(runs[0].info.run_id, "batch.loss_nats")
    assert [metric.step for metric in history] == list(range(1, steps + 1))
    trainings = [run.data.tags["training_sha256"] for run in client.search_runs(["1"])]
    assert len(trainings) == len(set(trainings))
    left = [
        *(project.folder / "data").rglob("*.tmp"),
        *(project.folder / "artifacts").rglob("*.tmp"),
    ]
    assert left == []


@pytest.mark.slow
def test_random_experiments_with_random_kills_end_consistent(project):
    generator, end = random.Random(SEED), time.monotonic() + 60 * MINUTES
    killed = finished = 0
    while time.monotonic() < end:
        compose(project, generator)
        for _ in range(generator.randrange(1, 4)):
            code = repro_and_kill(project, generator)
            killed, finished = killed + (code != 0), finished + (code == 0)
    assert_consistent(project)
    print(f"{killed} killed, {finished} finished")
