"""Many experiments at once over one store: none is lost, and no lock is an error."""

import subprocess

import pytest
from mlflow import MlflowClient
from patience import PATIENCE, wait_for

from neural_ngram.pipeline.boundary import landlock

WIDTHS = range(5, 13)
BY_HAND = (13, 14)
SMALL = ("training.max_steps=30", "training.evaluate_every=15", "tokenizer.vocabulary_size=300")


def overrides(width: int) -> list[str]:
    return [w for o in (*SMALL, f"model.hidden_width={width}") for w in ("-S", o)]


def wait_for_the_queue(project) -> str:
    def idle() -> bool:
        status = project.dvc("queue", "status")
        return "Queued" not in status and "Running" not in status

    wait_for(idle, "the end of the queue")
    return project.dvc("queue", "status")


@pytest.mark.slow
def test_eight_queued_and_two_temporary_experiments_share_a_store(pipeline):
    for width in WIDTHS:
        pipeline.dvc("exp", "run", "--queue", *overrides(width))
    by_hand = [
        subprocess.Popen(
            ["dvc", "exp", "run", "--temp", *overrides(width)],
            cwd=pipeline.folder,
            env=pipeline.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for width in BY_HAND
    ]
    pipeline.start("dvc", "queue", "start", "-j", "8")
    said = [process.communicate(timeout=PATIENCE)[0] for process in by_hand]
    assert [process.returncode for process in by_hand] == [0, 0], said
    status = wait_for_the_queue(pipeline)
    pipeline.start("dvc", "queue", "stop")
    assert status.count("Success") == len(WIDTHS), status
    assert not any("warning" in text or "locked" in text for text in said)
    client = MlflowClient(f"sqlite:///{pipeline.folder / 'runs/mlflow.db'}")
    found = [
        run
        for run in client.search_runs(["1"])
        if int(run.data.params["model.hidden_width"]) in (*WIDTHS, *BY_HAND)
    ]
    assert sorted(int(run.data.params["model.hidden_width"]) for run in found) == [
        *WIDTHS,
        *BY_HAND,
    ]
    assert {run.info.status for run in found} == {"FINISHED"}
    strongest = "landlock" if landlock.version() else "audit"
    assert {run.data.tags["boundary"] for run in found} == {strongest}
    for run in found:
        history = client.get_metric_history(run.info.run_id, "batch.loss_nats")
        assert [metric.step for metric in history] == list(range(1, 31))
        assert "validation.bits_per_byte" in run.data.metrics
    versions = {v.run_id: int(v.version) for v in client.search_model_versions()}
    assert versions.keys() >= {run.info.run_id for run in found}
    newest = client.get_model_version_by_alias("neural-ngram", "newest")
    assert int(newest.version) == len(versions) == max(versions.values())
    assert not list((pipeline.folder / "runs").glob("spool/*"))
    assert not list((pipeline.folder / "runs").glob("checkpoints/*"))
