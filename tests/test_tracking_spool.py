"""A store that is down, hangs or answers with errors delays a run; nothing of it is lost."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from neural_ngram.artifacts import write_json
from neural_ngram.errors import ArtifactError, TrackingError
from neural_ngram.tracking import sending, spool
from neural_ngram.tracking.run import find_run, start_run
from neural_ngram.tracking.sending import synchronise
from neural_ngram.tracking.spool import MODEL_TAG, Event, Opening
from neural_ngram.tracking.store import Recorder


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which nothing is; making one takes seconds."""
    folder = tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DVC_ROOT", str(folder))
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        with start_run("first", {}):
            pass
    return folder / "runs/mlflow.db"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(empty_store, tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name in ("TIMEOUT", "MAX_RETRIES", "BACKOFF_FACTOR"):
        monkeypatch.setenv(f"MLFLOW_HTTP_REQUEST_{name}", "1")
    return tmp_path


class Errors(BaseHTTPRequestHandler):
    def answer(self) -> None:
        self.send_response(500)
        self.end_headers()
        self.wfile.write(b"no")

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_) -> None:
        pass


class Hangs(Errors):
    gone = threading.Event()

    def answer(self) -> None:
        self.gone.wait()

    do_GET = do_POST = answer  # noqa: N815


class Nonsense(Errors):
    def answer(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>a captive portal</html>")

    do_GET = do_POST = answer  # noqa: N815


@contextmanager
def served(handler: type[Errors] | None) -> Iterator[str]:
    """The address of a server; of none at all without a handler."""
    if handler is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    Hangs.gone.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    Hangs.gone.set()
    server.shutdown()
    server.server_close()


def log_everything(file: Path) -> None:
    with start_run("a model", {"model.hidden": "tanh"}, "key") as run:
        for step in range(1500):
            run.metric("batch.loss_nats", step / 2, step)
        run.dataset("train", "f" * 64, file)
        run.artifact(file, "generation")
        run.tags({MODEL_TAG: "abc"})
    with find_run("abc", "unused", {"never": "sent"}) as run:
        run.metrics({"validation.loss_nats": 1.5}, 1500)
        run.artifact(file.parent, "evaluation")
        run.model(file.parent)
    shutil.rmtree(file.parent)


def stored(root: Path) -> list[Run]:
    client = MlflowClient(f"sqlite:///{root / 'runs/mlflow.db'}")
    return [run for run in client.search_runs(["1"]) if run.info.run_name != "first"]


def assert_everything(root: Path) -> None:
    (run,) = stored(root)
    client = MlflowClient(f"sqlite:///{root / 'runs/mlflow.db'}")
    assert (run.info.run_name, run.info.status) == ("a model", "FINISHED")
    assert run.data.params == {"model.hidden": "tanh"}
    assert run.data.metrics == {"batch.loss_nats": 749.5, "validation.loss_nats": 1.5}
    assert (run.data.tags[MODEL_TAG], run.data.tags["training_sha256"]) == ("abc", "key")
    history = client.get_metric_history(run.info.run_id, "batch.loss_nats")
    assert [(m.step, m.value) for m in history] == [(s, s / 2) for s in range(1500)]
    assert len(run.inputs.dataset_inputs) == 1
    folders = {a.path for a in client.list_artifacts(run.info.run_id)}
    assert folders == {"generation", "evaluation"}
    (sample,) = client.list_artifacts(run.info.run_id, "evaluation")
    assert sample.path == "evaluation/samples.json"
    (version,) = client.search_model_versions("name = 'neural-ngram'")
    assert version.run_id == run.info.run_id
    assert client.get_model_version_by_alias("neural-ngram", "newest").version == version.version


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    (tmp_path / "made/samples.json").write_text("{}")
    return tmp_path / "made/samples.json"


def entries(root: Path) -> list[Path]:
    return sorted((root / "runs/spool").glob("*"))


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("handler", [None, Errors, Hangs, Nonsense])
def test_what_a_broken_server_does_not_take_is_sent_later(
    root: Path, file: Path, handler: type[Errors] | None, monkeypatch, capsys
):
    limits, put = list[float](), HTTPConnection.putrequest

    def counting(connection: HTTPConnection, *arguments, **options) -> None:
        limits.append(connection.timeout)
        put(connection, *arguments, **options)

    with served(handler) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        with monkeypatch.context() as patched:
            patched.setattr(HTTPConnection, "putrequest", counting)
            log_everything(file)
        attempts = 2 if handler is Nonsense else 4
        assert limits == [1] * attempts  # of two runs, each attempt given up after a second
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 2
        for line, entry in zip(told, entries(root), strict=True):
            assert line.startswith(f"  warning: not sent to MLflow at {address} (")
            assert line.endswith(f"is kept in {entry}, and `neural-ngram sync` sends it")
        with pytest.raises(TrackingError, match=r"it is kept, so try again later"):
            synchronise(print)
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert synchronise(print) == 2
    assert entries(root) == []
    assert_everything(root)


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("failing", range(7))
def test_a_store_that_breaks_in_between_loses_nothing(
    root: Path, file: Path, failing: int, monkeypatch
):
    calls, apply = 0, Recorder.apply

    def breaking(recorder: Recorder, event) -> None:
        nonlocal calls
        calls += 1
        if calls > failing:
            raise ConnectionError("gone")
        apply(recorder, event)

    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "apply", breaking)
        log_everything(file)
    assert synchronise(print) == 2
    assert synchronise(print) == 0
    assert_everything(root)


@pytest.mark.promise("reliability")
def test_sending_twice_adds_nothing(root: Path, file: Path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        log_everything(file)
    shutil.copytree(root / "runs/spool", root / "kept")
    assert synchronise(print) == 2
    shutil.rmtree(root / "runs/spool")
    shutil.copytree(root / "kept", root / "runs/spool")
    assert synchronise(print) == 2
    assert_everything(root)


@pytest.mark.promise("reliability")
def test_a_training_killed_without_a_store_goes_on_in_one_run(root: Path, monkeypatch):
    code = (
        "import os, signal\nfrom neural_ngram.tracking.run import start_run\n"
        "with start_run('once', {}, 'key') as run:\n"
        "    run.tags({'a': 1})\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (entry,) = entries(root)
    with (entry / "events.jsonl").open("a") as events:
        events.write('{"do": "tags", "val')
    with start_run("once", {}, "key"):
        pass
    assert entries(root) == []
    (run,) = stored(root)
    assert (run.info.status, run.data.tags["a"]) == ("FINISHED", "1")


def test_a_training_killed_without_a_store_is_killed(root: Path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        with suppress(KeyboardInterrupt), start_run("once", {}, "key"):
            raise KeyboardInterrupt
    synchronise(print)
    assert [run.info.status for run in stored(root)] == ["KILLED"]


def test_what_is_still_written_is_left_alone(root: Path, monkeypatch):
    told: list[str] = []
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        with start_run("once", {}, "key"):
            assert synchronise(told.append) == 0
    assert told[0].endswith("is still being written; send it later")
    assert synchronise(print) == 1


def keep(monkeypatch: pytest.MonkeyPatch, name: str = "kept") -> None:
    """A run that the store does not accept."""
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        with start_run(name, {}) as run:
            run.tags({"a": 1})


@pytest.mark.promise("reliability")
def test_an_entry_that_was_never_begun_is_dropped(root: Path, monkeypatch):
    def full(path: Path, content: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(".opening.json.1.tmp").touch()
        raise ArtifactError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(spool, "write_json", full)
        with pytest.raises(ArtifactError, match="no space left"):
            keep(monkeypatch)
    (root / "runs/spool/1-1").mkdir()
    assert len(entries(root)) == 2
    keep(monkeypatch)
    assert synchronise(print) == 1
    assert entries(root) == []
    assert [run.info.run_name for run in stored(root)] == ["kept"]


def test_an_entry_that_just_begins_is_left_alone(root: Path, monkeypatch):
    told: list[str] = []

    def interrupted(path: Path, content: dict) -> None:
        assert synchronise(told.append) == 0
        write_json(path, content)
        assert synchronise(told.append) == 0

    with monkeypatch.context() as patched:
        patched.setattr(spool, "write_json", interrupted)
        keep(monkeypatch)
    assert [line.split(" is ")[1] for line in told] == ["still being written; send it later"] * 2
    assert synchronise(print) == 1
    assert [run.data.tags["a"] for run in stored(root)] == ["1"]


@pytest.mark.promise("reliability")
def test_entries_that_come_while_others_are_sent_arrive_whole(monkeypatch):
    arrived: list[int] = []

    class Store:
        continues = True
        run_id = "run"

        def __init__(self, opening: Opening, *, now: bool) -> None:
            pass

        def apply(self, event: Event) -> None:
            arrived.append(event["number"])

    def write() -> None:
        for number in range(100):
            entry = spool.Entry(opening)
            entry.add({"do": "end", "number": number})
            entry.close()

    monkeypatch.setattr(sending, "Recorder", Store)
    values = {"parameters": {}, "restarts": False, "commit": None, "time": 0}
    opening = Opening(name="many", tag=MODEL_TAG, value=None, **values)
    with ThreadPoolExecutor() as threads:
        jobs = [threads.submit(write)]
        jobs += [threads.submit(send_until, jobs[0].done) for _ in range(2)]
        assert sum(job.result() or 0 for job in jobs) + synchronise(print) == 100
    assert sorted(arrived) == list(range(100))


def send_until(done: Callable[[], bool]) -> int:
    sent = 0
    while not done():
        sent += synchronise(lambda _: None)
    return sent


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("opening.json", b'{"name": "x"}', "Opening"),
        ("opening.json", b"[]", "Opening"),
        ("opening.json", None, "opening.json"),
        ("events.jsonl", b'{"do": "ta\n{"do": "end"}\n', 'line 1 is not an event: \'{"do": "ta\''),
        ("events.jsonl", b'{"do": "end"}\n3\n', "line 2 is not an event: '3'"),
        ("events.jsonl", b"{}\n", "line 1 is not an event: '{}'"),
        ("events.jsonl", b"\xff\n", "line 1 is not an event"),
    ],
)
def test_a_damaged_entry_is_named_and_the_others_are_sent(
    root: Path, file: str, content: bytes | None, problem: str, monkeypatch
):
    keep(monkeypatch, "damaged")
    (damaged,) = entries(root)
    (damaged / file).unlink() if content is None else (damaged / file).write_bytes(content)
    keep(monkeypatch, "whole")
    told: list[str] = []
    assert synchronise(told.append) == 1
    warning, sent = told
    assert warning.startswith(f"warning: {damaged} is damaged and not sent (")
    assert problem in warning
    assert sent.endswith(": whole")
    assert entries(root) == [damaged]
    assert [run.info.run_name for run in stored(root)] == ["whole"]


def test_a_damaged_entry_keeps_no_run_from_the_store(root: Path):
    folder = root / "runs/spool/1-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(b"\xff\n")
    with find_run("abc", "evaluated", {}):
        pass
    assert [run.info.run_name for run in stored(root)] == ["evaluated"]
