"""A project under any name, moved or copied: its runs belong to the folder that holds them."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient
from sqlalchemy.engine import make_url

from neural_ngram.errors import TrackingError
from neural_ngram.tracking.past import past_runs
from neural_ngram.tracking.place import store_uri
from neural_ngram.tracking.relocation import relocate
from neural_ngram.tracking.run import find_run, start_run
from neural_ngram.tracking.sending import synchronise
from neural_ngram.tracking.spool import MODEL_TAG

NAMES = ("x%2Fy", "what?now", "a#b ü", "sp ace+plus&more;'\"")
ADDRESSES = {
    "experiments": ("artifact_location",),
    "runs": ("artifact_uri",),
    "logged_models": ("artifact_location",),
    "model_versions": ("source", "storage_location"),
}


def record(project: Path, model: str, packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log a run with a file and a registered model, as the stages of a project do."""
    monkeypatch.setenv("DVC_ROOT", str(project))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with start_run(model, {}) as run:
        run.tags({MODEL_TAG: model})
        run.artifact(packaged / "MLmodel", "model")
    with find_run(model, "unused", {}) as run:
        run.model(packaged)


def addresses(project: Path) -> list[str]:
    found: list[str] = []
    with closing(sqlite3.connect(project / "runs/mlflow.db")) as connection:
        for table, columns in ADDRESSES.items():
            for column in columns:
                rows = connection.execute(f"SELECT {column} FROM {table}").fetchall()
                found += [address for (address,) in rows if address]
    return found


def assert_complete(project: Path, models: set[str], folder: Path) -> None:
    """Runs can be read, and the model served, from this project alone."""
    read = {past.name: past.download("model", folder) for past in past_runs()}
    assert read.keys() == models
    assert all((path / "MLmodel").exists() for path in read.values())
    if "%" not in project.name:  # MLflow itself decodes the path of a model that it loads
        mlflow.set_tracking_uri(store_uri())
        try:
            loaded = mlflow.pyfunc.load_model("models:/neural-ngram@newest")
        finally:
            mlflow.set_tracking_uri(None)
        assert loaded.predict(pd.DataFrame({"prompt": ["a"]}))["continuations"][0]
    inside = (project.as_uri() + "/", f"{project}/")
    assert all(
        address.startswith(inside) for address in addresses(project) if "mlruns" not in address
    )


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("name", NAMES)
def test_a_project_folder_may_have_any_name(
    tmp_path: Path, name: str, packaged_chain: Path, monkeypatch: pytest.MonkeyPatch
):
    project = tmp_path / "place" / name
    project.mkdir(parents=True)
    record(project, "first", packaged_chain, monkeypatch)
    assert make_url(store_uri()).database == str(project / "runs/mlflow.db")
    assert_complete(project, {"first"}, tmp_path)
    assert [path.name for path in project.parent.iterdir()] == [name]
    assert synchronise(print) == 0


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("how", [shutil.move, shutil.copytree])
def test_a_project_that_was_moved_or_copied_has_its_runs_with_it(
    tmp_path: Path, how, packaged_chain: Path, monkeypatch: pytest.MonkeyPatch
):
    old, new = tmp_path / "old place", tmp_path / "new place#2"
    old.mkdir()
    record(old, "first", packaged_chain, monkeypatch)
    before = {path.relative_to(old) for path in (old / "runs/artifacts").rglob("*")}
    how(old, new)
    monkeypatch.setenv("DVC_ROOT", str(new))
    assert_complete(new, {"first"}, tmp_path)
    record(new, "second", packaged_chain, monkeypatch)
    assert_complete(new, {"first", "second"}, tmp_path)
    if old.exists():  # the original is as it was
        assert {path.relative_to(old) for path in (old / "runs/artifacts").rglob("*")} == before
        monkeypatch.setenv("DVC_ROOT", str(old))
        assert_complete(old, {"first"}, tmp_path)
    shutil.rmtree(old, ignore_errors=True)
    monkeypatch.setenv("DVC_ROOT", str(new))
    assert_complete(new, {"first", "second"}, tmp_path)


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("names", [("a/b", "a"), ("a", "a/b"), ("ab", "a"), ("a", "ab")])
def test_addresses_change_once_and_only_those_of_the_old_place(tmp_path: Path, names):
    old, new = (tmp_path / name for name in names)
    (new / "runs").mkdir(parents=True)
    with closing(sqlite3.connect(new / "runs/mlflow.db")) as connection, connection:
        connection.execute("CREATE TABLE experiments (artifact_location TEXT)")
        connection.execute("CREATE TABLE runs (artifact_uri TEXT)")
        places = [old.as_uri() + "/runs/artifacts", str(old / "mlruns/0"), "s3://bucket/runs"]
        connection.executemany("INSERT INTO experiments VALUES (?)", [(each,) for each in places])
        runs = [old.as_uri() + "/runs/artifacts/1", old.as_uri() + "x/runs/artifacts/2"]
        connection.executemany("INSERT INTO runs VALUES (?)", [(each,) for each in runs])
    assert relocate(new) == 3
    assert relocate(new) == 0
    with closing(sqlite3.connect(new / "runs/mlflow.db")) as connection:
        found = connection.execute("SELECT * FROM experiments UNION ALL SELECT * FROM runs")
        assert [address for (address,) in found] == [
            *(new.as_uri() + "/runs/artifacts", str(new / "mlruns/0"), "s3://bucket/runs"),
            *(new.as_uri() + "/runs/artifacts/1", old.as_uri() + "x/runs/artifacts/2"),
        ]


@pytest.mark.promise("reliability")
def test_a_database_in_use_is_not_half_changed(tmp_path: Path, monkeypatch):
    (tmp_path / "runs").mkdir()
    database = tmp_path / "runs/mlflow.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE experiments (artifact_location TEXT)")
        connection.execute("INSERT INTO experiments VALUES ('file:///old/runs/artifacts')")
        connection.execute("CREATE TABLE model_versions (source TEXT)")  # lacks a column
    with pytest.raises(TrackingError, match="its addresses cannot be changed"):
        relocate(tmp_path)
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT * FROM experiments").fetchall()
    assert found == [("file:///old/runs/artifacts",)]


@pytest.mark.promise("reliability")
def test_a_deleted_experiment_is_told_with_the_command_that_restores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with start_run("before", {}):
        pass
    client = MlflowClient(store_uri())
    client.delete_experiment("1")
    with start_run("after", {}):
        pass
    command = f"MLFLOW_TRACKING_URI={store_uri()} mlflow experiments restore --experiment-id 1"
    assert command in capsys.readouterr().err
    with pytest.raises(TrackingError) as refused:
        synchronise(print)
    assert command in str(refused.value)
    assert "try again later" not in str(refused.value)
    python = Path(sys.executable).parent
    subprocess.run(command, shell=True, check=True, env={"PATH": f"{python}:/usr/bin:/bin"})
    assert synchronise(print) == 1


def test_the_experiment_that_the_environment_names_is_used(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    with start_run("a model", {}) as run:
        run.tags({MODEL_TAG: "abc"})
    client = MlflowClient(store_uri())
    assert client.get_experiment_by_name("neural-ngram") is None
    mine = client.get_experiment_by_name("mine")
    assert [run.info.run_name for run in client.search_runs([mine.experiment_id])] == ["a model"]
    assert mine.artifact_location == (tmp_path / "runs/artifacts").as_uri()
    assert [past.name for past in past_runs()] == ["a model"]


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("content", [b"no database at all, but text" * 99, None])
def test_a_store_that_cannot_be_opened_is_told_without_trying_again(
    tmp_path: Path, content: bytes | None, monkeypatch, capsys
):
    """MLflow would try ten times, and wait between them; what is counted here is none."""
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "runs").mkdir()
    database = tmp_path / "runs/mlflow.db"
    database.mkdir() if content is None else database.write_bytes(content)
    waited: list[float] = []
    monkeypatch.setattr("mlflow.store.db.utils.time.sleep", waited.append)
    with start_run("kept", {}):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert f"not sent to MLflow at {database} ({database} cannot be opened: " in line
    assert waited == []
