"""One run a model, found again by its weights; a store that several processes may open at once."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from patience import PATIENCE

from neural_ngram.errors import TrackingError
from neural_ngram.settings import Settings, flatten
from neural_ngram.tracking.past import newest_run, past_runs
from neural_ngram.tracking.run import find_run, start_run
from neural_ngram.tracking.spool import MODEL_TAG


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One store for all tests here, since making a database takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DVC_ROOT", str(folder))
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield folder


def client_of(folder: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{folder / 'runs/mlflow.db'}")


def stored(folder: Path, name: str) -> Run:
    """The one run of this name."""
    (run,) = client_of(folder).search_runs(["1"], f"attributes.run_name = '{name}'")
    return run


def test_a_run_is_found_by_the_hash_of_its_model(store: Path):
    with start_run("a model", {"model.hidden": "tanh"}) as trained:
        trained.tags({MODEL_TAG: "abc"})
    with find_run("abc", "unused", {}) as found:
        found.metric("validation.loss_nats", 1.5, step=7)
    run = stored(store, "a model")
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "a model"
    assert run.data.metrics == {"validation.loss_nats": 1.5}
    assert run.data.params == {"model.hidden": "tanh"}
    assert (store / "runs/mlflow.db").exists()


def test_a_run_is_tagged_with_the_weakest_sandbox_of_its_stages(store: Path):
    with start_run("sandbox", {}) as run:
        for stage, kind in (("train", "landlock"), ("evaluate", "off"), ("generate", "audit")):
            run.boundary(stage, kind)
    tags = stored(store, "sandbox").data.tags
    assert tags["boundary"] == "off"
    assert (tags["boundary.train"], tags["boundary.generate"]) == ("landlock", "audit")


def test_a_run_is_made_when_the_store_knows_no_such_model(store: Path):
    with find_run("unseen", "restored", {"training.seed": 1}):
        pass
    run = stored(store, "restored")
    assert run.info.status == "FINISHED"
    data = run.data
    assert (data.tags[MODEL_TAG], data.params) == ("unseen", {"training.seed": "1"})


@pytest.mark.parametrize(
    ("problem", "status"),
    [(ValueError, "FAILED"), (KeyboardInterrupt, "KILLED"), (SystemExit, "KILLED")],
)
def test_a_run_that_raises_is_marked_and_keeps_its_metrics(store: Path, problem, status: str):
    name = f"broken by {problem.__name__}"
    with suppress(problem), start_run(name, {}) as run:
        run.metric("batch.loss_nats", 2.0, step=1)
        raise problem
    kept = stored(store, name)
    assert (kept.info.status, kept.data.metrics) == (status, {"batch.loss_nats": 2.0})


def test_a_run_older_than_a_setting_is_found_as_if_it_had_the_default(store: Path):
    with start_run("old", {"training.seed": 5}) as old:
        old.tags({MODEL_TAG: "made before the setting"})
    defaults = {"training.seed": 23, "training.averaging": None}
    wanted = {"training.seed": 5, "training.averaging": None}
    found = newest_run(wanted, defaults)
    assert found is not None
    assert found.name == "old"
    assert newest_run(wanted | {"training.averaging": "ema"}, defaults) is None
    assert newest_run(wanted | {"training.seed": 6}, defaults) is None


def test_the_same_training_goes_on_in_its_run_and_adds_no_step_twice(store: Path):
    with suppress(KeyboardInterrupt), start_run("once", {"a": 1}, "training") as first:
        first.curve("batch.loss_nats", 1, [3.0])
        raise KeyboardInterrupt
    assert stored(store, "once").info.status == "KILLED"
    with start_run("once", {"a": 1}, "training") as second:
        second.curve("batch.loss_nats", 1, [3.0, 2.0])
        second.dataset("train", "f" * 64, store)
        second.dataset("train", "f" * 64, store)
    run = stored(store, "once")
    assert run.info.status == "FINISHED"
    assert len(run.inputs.dataset_inputs) == 1
    history = client_of(store).get_metric_history(run.info.run_id, "batch.loss_nats")
    assert [(m.step, m.value) for m in history] == [(1, 3.0), (2, 2.0)]
    with start_run("other", {"a": 1}, "another training"):
        pass
    assert stored(store, "other").info.run_id != run.info.run_id


@pytest.mark.promise("reliability")
def test_the_runs_of_trainings_that_stopped_are_marked(store: Path):
    with start_run("before", {}):
        pass
    client = client_of(store)
    ids = {
        name: client.create_run("1", tags={"training_sha256": name}).info.run_id
        for name in ("stopped", "alive")
    }
    with start_run("now", {}, "going on") as now:
        now.kill({"stopped", "going on"})
    status = {name: client.get_run(run_id).info.status for name, run_id in ids.items()}
    assert status == {"stopped": "KILLED", "alive": "RUNNING"}
    assert stored(store, "now").info.status == "FINISHED"


def test_every_step_of_a_long_curve_is_kept_in_order(store: Path):
    with start_run("long", {}) as run:
        for step in range(1500):
            run.metric("batch.loss_nats", step / 2, step)
        run.flush()
        run.curve("batch.loss_nats", 1500, [step / 2 for step in range(1500, 2500)])
    history = client_of(store).get_metric_history(
        stored(store, "long").info.run_id, "batch.loss_nats"
    )
    assert [(m.step, m.value) for m in history] == [(s, s / 2) for s in range(2500)]


def test_artifacts_and_datasets_are_logged(store: Path, tmp_path: Path):
    file = tmp_path / "samples.json"
    file.write_text("{}")
    with start_run("artifacts", {}) as run:
        run.artifact(file, "generation")
        run.dataset("train", "f" * 64, file)
    kept = stored(store, "artifacts")
    listed = client_of(store).list_artifacts(kept.info.run_id, "generation")
    assert [artifact.path for artifact in listed] == ["generation/samples.json"]
    (dataset,) = kept.inputs.dataset_inputs
    assert (dataset.dataset.name, dataset.dataset.digest) == ("train", "f" * 32)


@pytest.mark.promise("reliability")
def test_each_runs_model_becomes_a_version_once_and_the_newest_has_the_alias(
    store: Path, tmp_path: Path
):
    (tmp_path / "MLmodel").write_text("flavors: {}\n")
    for name in ("first", "second"):
        with find_run(name, name, {}) as run:
            run.model(tmp_path)
            run.model(tmp_path)
    with find_run("first", "unused", {}) as run:
        run.model(tmp_path)
    client = client_of(store)
    versions = client.search_model_versions("name = 'neural-ngram'")
    assert {v.version: v.description for v in versions} == {1: "first", 2: "second"}
    newest = client.get_model_version_by_alias("neural-ngram", "newest")
    assert newest.version == 2
    (model,) = client.get_run(newest.run_id).outputs.model_outputs
    assert f"/{model.model_id}/" in newest.source
    assert (Path(newest.source.removeprefix("file://")) / "MLmodel").exists()


def test_another_store_is_used_when_its_address_is_given(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    address = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with start_run("elsewhere", {}):
        pass
    assert [run.info.run_name for run in MlflowClient(address).search_runs(["1"])] == ["elsewhere"]


def test_processes_that_open_a_fresh_store_at_once_all_succeed(tmp_path: Path):
    code = "from neural_ngram.tracking.run import start_run\nwith start_run('r', {}): pass"
    environment = {**os.environ, "DVC_ROOT": str(tmp_path)}
    environment.pop("MLFLOW_TRACKING_URI", None)
    children = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [child.wait(timeout=PATIENCE) for child in children] == [0, 0, 0]


def test_a_store_that_does_not_answer_is_told_to_who_reads_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError, match="store cannot be read"):
        list(past_runs())


def test_the_experiment_names_columns_that_runs_have(store: Path):
    with start_run("one", {"model.hidden": "tanh"}) as run:
        run.metric("validation.loss_nats", 1.0, 0)
    experiment = MlflowClient(f"sqlite:///{store / 'runs/mlflow.db'}").get_experiment("1")
    chosen = json.loads(experiment.tags["mlflow.sharedViewState.comparison"])["selectedColumns"]
    assert {"metrics.`validation.loss_nats`", "params.`model.hidden`"} <= set(chosen)
    known = {name for name, _, _ in flatten(Settings())}
    assert {column[8:-1] for column in chosen if column.startswith("params.")} <= known
