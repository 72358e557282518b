"""A project of its own for tests that run stages, and the whole pipeline run there once."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from patience import PATIENCE

ROOT = Path(__file__).parents[2]
SMALL = ("training.max_steps=30", "training.evaluate_every=15", "tokenizer.vocabulary_size=300")
COPIED = (
    *("conf", "src", "hydra_plugins", "data/corpus", ".dvc/config", ".dvc/plots"),
    *("dvc.yaml", "params.yaml", ".dvcignore", ".gitignore", "artifacts/test"),
)


class Project:
    """A copy of the project in a git repository, and commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": "src", "NO_COLOR": "1"}
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
            self.environment.pop(name, None)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def start(self, *command: str) -> None:
        """Run a command that leaves processes behind, which would hold a captured output open."""
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, cwd=self.folder, env=self.environment, check=True, **silent)

    def dvc(self, *arguments: str) -> str:
        """Run dvc, which must succeed; returns what it printed."""
        done = self.run("dvc", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def stage(self, name: str, *overrides: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", f"neural_ngram.stages.{name}", *overrides)

    def experiment(self, *overrides: str, options: tuple[str, ...] = ()) -> str:
        settings = [word for override in (*SMALL, *overrides) for word in ("-S", override)]
        return self.dvc("exp", "run", *options, *settings)


def copy_project(folder: Path) -> Project:
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (folder / "ledger.jsonl").touch()
    project = Project(folder)
    for command in (
        ("git", "init", "-q"),
        ("git", "add", "-A"),
        ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "start"),
    ):
        assert project.run(*command).returncode == 0
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh project in which nothing has run and nobody looked at test."""
    return copy_project(tmp_path)


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Project:
    """A project in which all stages have run, on the embedded corpus with a small model.

    One process makes it, and each takes a copy.
    """
    made = tmp_path_factory.getbasetemp().parent / f"pipeline-{testrun_uid}"
    with FileLock(f"{made}.lock"):
        if not made.with_suffix(".output").exists():
            made.with_suffix(".output").write_text(copy_project(made).experiment())
    project = Project(tmp_path_factory.mktemp("pipeline") / "project")
    shutil.copytree(made, project.folder, symlinks=True)
    project.first_output = made.with_suffix(".output").read_text()
    return project


@pytest.fixture(scope="session")
def copied_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Project]:
    """Makes a fresh project that several tests may share."""
    return lambda name: copy_project(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def run_preset(copied_project: Callable[[str], Project]) -> Callable[..., Project]:
    """Compose an experiment in a project of its own and run some of its stages."""

    def run(name: str, *overrides: str, stages: tuple[str, ...]) -> Project:
        project = copied_project(name)
        composed = project.run("neural-ngram", "compose", f"experiment={name}", *overrides)
        assert composed.returncode == 0, composed.stderr
        for stage in stages:
            done = project.stage(stage)
            assert done.returncode == 0, done.stdout + done.stderr
        return project

    return run
