"""What SIGKILL may leave of the files that DVC writes in place."""

import json
import random
from pathlib import Path

import pytest
from dvc.exceptions import DvcException
from dvc.lock import make_lock
from dvc.repo import Repo

from neural_ngram.cli.main import main
from neural_ngram.pipeline.repair import repair

pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")  # DVC's own

STAGE = "stages:\n  copy:\n    cmd: cp a b && echo once >> runs\n    deps: [a]\n    outs: [b]\n"
CLAIM = {"write": {"/a": {"pid": 1, "cmd": "dvc repro"}}, "read": {}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DVC project of one stage, which has run once."""
    monkeypatch.chdir(tmp_path)
    Repo.init(no_scm=True).close()
    (tmp_path / "dvc.yaml").write_text(STAGE)
    (tmp_path / "a").write_text("text")
    reproduce(tmp_path)
    return tmp_path


def reproduce(folder: Path) -> None:
    with Repo(str(folder)) as repository:
        repository.reproduce()


@pytest.mark.promise("reliability")
@pytest.mark.parametrize("size", [0, 1, 20, -1])
def test_a_cut_lock_of_files_is_deleted_and_dvc_goes_on(project: Path, size: int, capsys):
    lock = project / ".dvc/tmp/rwlock"
    lock.write_text(json.dumps(CLAIM)[:size])
    (project / "a").write_text("another")
    with pytest.raises(DvcException, match="failed to reproduce"):
        reproduce(project)
    assert main(["repair"]) == 0
    assert ".dvc/tmp/rwlock: half-written, deleted" in capsys.readouterr().out
    reproduce(project)
    assert (project / "b").read_text() == "another"


@pytest.mark.promise("reliability")
def test_a_record_of_stages_cut_anywhere_is_read_or_deleted_and_reproduced(project: Path):
    record = project / "dvc.lock"
    whole = record.read_bytes()
    deleted = 0
    for cut in [0, *random.Random(1).sample(range(len(whole)), 30)]:
        record.write_bytes(whole[:cut])
        ran = (project / "runs").read_text()
        broken = repair(project)
        reproduce(project)
        with Repo(str(project)) as repository:
            assert repository.status() == {}
        if broken:
            deleted += 1
            assert (record.read_bytes(), (project / "runs").read_text()) == (whole, ran)
    assert deleted > 3


@pytest.mark.promise("reliability")
def test_whole_files_are_left_alone(project: Path):
    (project / ".dvc/tmp/rwlock").write_text(json.dumps(CLAIM))
    before = {
        path: path.read_bytes() for path in (project / ".dvc/tmp/rwlock", project / "dvc.lock")
    }
    assert repair(project) == []
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.promise("reliability")
def test_nothing_is_deleted_while_another_dvc_works(project: Path, capsys, monkeypatch):
    monkeypatch.setattr("dvc.lock.DEFAULT_TIMEOUT", 0.1)
    lock = project / ".dvc/tmp/rwlock"
    lock.write_text("")
    with make_lock(str(project / ".dvc/tmp/lock")):
        assert main(["repair"]) == 1
    assert lock.exists()
    assert capsys.readouterr().err.startswith("neural-ngram: another DVC process is running in")


def test_a_folder_without_dvc_is_refused(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").touch()
    assert main(["repair"]) == 1
    assert "DVC cannot work in" in capsys.readouterr().err
