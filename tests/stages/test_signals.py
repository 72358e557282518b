"""Ctrl-C, SIGTERM, a full disk and a read-only folder: one line, an exit code, nothing lost."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from mlflow import MlflowClient
from patience import PATIENCE

LONG = ("training.max_steps=100000", "training.evaluate_every=1000")
# Each stage with a folder that it writes to.
OUTPUTS = {
    "split_corpus": "data/splits",
    "learn_bpe": "artifacts/tokenizer",
    "build_windows": "data/windows/validation",
    "train": "artifacts/training",
    "oracle_conditional_entropy": "artifacts/oracle",
    "evaluate": "artifacts/evaluation",
    "generate": "artifacts/generation",
}


def slow_but(fast: str) -> list:
    return [fast, *(pytest.param(s, marks=pytest.mark.slow) for s in OUTPUTS if s != fast)]


@pytest.fixture
def copied(pipeline, tmp_path: Path):
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    return type(pipeline)(tmp_path / "copy")


def started(project, *command: str, **options) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        command, cwd=project.folder, env=project.environment, **pipes, **options
    )


def stage_command(stage: str, *overrides: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"neural_ngram.stages.{stage}", *overrides)


def contents(folder: Path) -> dict[str, bytes]:
    files = [file for name in ("data", "artifacts") for file in (folder / name).rglob("*")]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.is_file()}


def assert_whole(project, before: dict[str, bytes]) -> None:
    """Nothing is half-written, and nothing temporary is left."""
    after = contents(project.folder)
    assert {name for name in after if name.endswith(".tmp")} == set()
    assert {name for name in after if before.get(name) != after[name]} == set()


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_training_ends_in_one_line_and_its_run_is_killed(copied, number, code):
    before = contents(copied.folder)
    process = started(copied, *stage_command("train", *LONG))
    for line in process.stdout:
        if "step       0" in line:
            break
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert told == "train: interrupted; run the same command to continue\n"
    assert_whole(copied, before)
    client = MlflowClient(f"sqlite:///{copied.folder / 'runs/mlflow.db'}")
    found = client.search_runs(["1"], "params.`training.max_steps` = '100000'")
    assert [run.info.status for run in found] == ["KILLED"]


@pytest.mark.promise("reliability")
@pytest.mark.slow
@pytest.mark.parametrize("stage", OUTPUTS)
def test_a_stage_may_be_interrupted_at_any_moment(copied, stage: str):
    before, generator = contents(copied.folder), random.Random(stage)
    start = time.monotonic()
    assert copied.stage(stage).returncode == 0
    duration = time.monotonic() - start
    for _ in range(6):
        process = started(copied, *stage_command(stage))
        time.sleep(generator.uniform(0.2, duration))
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, 130), told
        assert told.splitlines()[: process.returncode // 130] == [
            f"{stage.replace('_', '-')}: interrupted; run the same command to continue"
        ] * (process.returncode // 130)
        assert "Traceback" not in told
        assert_whole(copied, before)


@pytest.mark.promise("reliability")
@pytest.mark.slow
def test_repro_is_right_after_interruptions_at_any_moment(copied):
    lock = (copied.folder / "dvc.lock").read_bytes()
    generator = random.Random(3)
    for _ in range(8):
        process = started(copied, "dvc", "repro", "--force", start_new_session=True)
        time.sleep(generator.uniform(1, 15))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    copied.dvc("repro")
    assert "up to date" in copied.dvc("repro")
    assert (copied.folder / "dvc.lock").read_bytes() == lock


def smallest_files(size: int) -> None:
    """As on a full disk, every write beyond a size fails; also those of databases."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def assert_refused(process: subprocess.Popen[str], stage: str, *told: str) -> None:
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, said
    line = said.strip().splitlines()[-1]
    assert line.startswith(f"{stage.replace('_', '-')}: error: "), said
    for words in told:
        assert words in line
    assert "Traceback" not in said


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("stage", slow_but("split_corpus"))
def test_a_full_disk_is_told_in_one_line_and_leaves_what_was_there(copied, stage: str):
    before = contents(copied.folder)
    process = started(copied, *stage_command(stage), preexec_fn=partial(smallest_files, 300))
    assert_refused(process, stage, "cannot be written", "free disk space")
    assert_whole(copied, before)
    assert copied.stage(stage).returncode == 0


@pytest.mark.promise("reliability")
@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 30_000, 200_000])
def test_repro_is_right_after_a_full_disk(copied, size: int):
    """Wherever it fills: in DVC's own files, in a stage's output, in MLflow's database."""
    lock = (copied.folder / "dvc.lock").read_bytes()
    command = ("dvc", "repro", "--force")
    process = started(copied, *command, preexec_fn=partial(smallest_files, size))
    process.communicate(timeout=PATIENCE)
    assert process.returncode
    copied.dvc("repro")
    assert "up to date" in copied.dvc("status")
    assert (copied.folder / "dvc.lock").read_bytes() == lock


@pytest.mark.promise("reliability")
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_real_full_disk(copied):
    shutil.rmtree(copied.folder / "artifacts/model")
    disk = copied.folder / "artifacts/model"
    disk.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk))
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        process = started(copied, *stage_command("train"))
        assert_refused(process, "train", "model.safetensors cannot be written", "No space left")
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    done = copied.stage("train")
    assert done.returncode == 0


def unprivileged(command: tuple[str, ...]) -> tuple[str, ...]:
    """Root may write to folders that are read-only; without this capability it may not."""
    if os.geteuid():
        return command
    dropped = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", *command)


@pytest.mark.promise("reliability")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="root cannot become less without setpriv")
@pytest.mark.parametrize("stage", slow_but("learn_bpe"))
def test_a_read_only_folder_is_told_in_one_line(copied, stage: str):
    before = contents(copied.folder)
    folder = copied.folder / OUTPUTS[stage]
    folder.chmod(0o555)
    try:
        process = started(copied, *unprivileged(stage_command(stage)))
        assert_refused(process, stage, OUTPUTS[stage], "cannot be written", "Permission denied")
    finally:
        folder.chmod(0o755)
    assert_whole(copied, before)


@pytest.mark.promise("reliability")
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("setpriv"), reason="root cannot become less without setpriv")
@pytest.mark.parametrize("name", ["artifacts/model", "artifacts", "data/windows"])
def test_repro_is_right_after_a_read_only_folder(copied, name: str):
    lock = (copied.folder / "dvc.lock").read_bytes()
    folder = copied.folder / name
    folder.chmod(0o555)
    process = started(copied, *unprivileged(("dvc", "repro", "--force")))
    process.communicate(timeout=PATIENCE)
    assert process.returncode
    if folder.exists():
        folder.chmod(0o755)
    copied.dvc("repro")
    assert "up to date" in copied.dvc("status")
    assert (copied.folder / "dvc.lock").read_bytes() == lock
