"""Training again gives the same bytes, and the run holds the evidence; a difference is named."""

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from neural_ngram.pipeline.replay import compare


def replay_tags(project) -> set[str]:
    client = MlflowClient(f"sqlite:///{project.folder / 'runs/mlflow.db'}")
    experiment = client.get_experiment_by_name("neural-ngram")
    runs = client.search_runs([experiment.experiment_id])
    return {run.data.tags["replay"] for run in runs if "replay" in run.data.tags}


@pytest.mark.slow
def test_a_replay_is_identical_and_a_changed_curve_is_found(pipeline, tmp_path: Path):
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    project = type(pipeline)(tmp_path / "copy")
    done = project.stage("replay")
    assert done.returncode == 0, done.stderr
    assert "files of train, generate are the same, bit for bit" in done.stdout
    assert replay_tags(project) == {"identical"}
    curve = project.folder / "artifacts/training/batches.csv"
    content = curve.read_text()
    curve.unlink()
    curve.write_text(content + "31,0.0\n")
    done = project.stage("replay")
    assert done.returncode == 1
    assert "other bytes in artifacts/training/batches.csv;" in done.stderr
    assert replay_tags(project) == {"different"}


def test_files_on_one_side_only_are_different(tmp_path: Path):
    for name in ("one/out/a", "one/out/b", "two/out/a", "two/out/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("same")
    found = compare(tmp_path / "one", tmp_path / "two", ["out"])
    assert not found["identical"]
    assert found["different"] == ["out/b", "out/c"]
