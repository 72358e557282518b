"""Without an MLflow server the stages do their work, and `neural-ngram sync` makes up for it."""

import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

from neural_ngram.artifacts import sha256_of_file


@pytest.mark.promise("reliability")
@pytest.mark.slow
def test_stages_without_a_server_finish_and_are_sent_later(pipeline, tmp_path: Path):
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    project = type(pipeline)(tmp_path / "copy")
    steps = ("training.max_steps=31", "training.evaluate_every=15")
    project.environment["MLFLOW_TRACKING_URI"] = "http://127.0.0.1:9"
    project.environment["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
    for stage in ("train", "evaluate", "generate"):
        done = project.stage(stage, *steps)
        assert done.returncode == 0, done.stderr
        (warning,) = done.stderr.strip().splitlines()
        assert warning.startswith("warning: not sent to MLflow at http://127.0.0.1:9 (")
    failed = project.run("neural-ngram", "sync")
    assert failed.returncode == 1
    assert failed.stderr.startswith("neural-ngram: MLflow at http://127.0.0.1:9 does not accept ")
    del project.environment["MLFLOW_TRACKING_URI"]
    sent = project.run("neural-ngram", "sync")
    assert (sent.returncode, sent.stderr) == (0, "")
    assert sent.stdout.endswith("3 entries sent\n")
    model = sha256_of_file(project.folder / "artifacts/model/model.safetensors")
    client = MlflowClient(f"sqlite:///{project.folder / 'runs/mlflow.db'}")
    (run,) = client.search_runs(["1"], f"tags.model_sha256 = '{model}'")
    assert (run.info.status, run.data.params["training.max_steps"]) == ("FINISHED", "31")
    assert "validation.bits_per_byte" in run.data.metrics
    folders = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert folders == {"model", "tokenizer", "training", "evaluation", "oracle", "generation"}
