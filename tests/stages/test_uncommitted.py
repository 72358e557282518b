"""Presets and texts that git does not track, in place and in temporary runs."""

import shutil
from pathlib import Path

import pytest

MINE = "hidden: tanh\nhidden_width: 24\n"


@pytest.fixture
def project(pipeline, tmp_path: Path):
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    project = type(pipeline)(tmp_path / "copy")
    (project.folder / "conf/model/mine.yaml").write_text(MINE)
    (project.folder / "my.txt").write_text("".join(f"A ferry left at {n}.\n" for n in range(50)))
    return project


def test_a_preset_that_is_not_committed_disturbs_no_temporary_run(project):
    assert "Ran experiment" in project.experiment("training.seed=5", options=("--temp",))


def test_a_preset_that_is_not_committed_runs_in_place(project):
    assert "Ran experiment" in project.experiment("model=mine")


@pytest.mark.parametrize(
    ("setting", "file"), [("corpus.path=my.txt", "my.txt"), ("model=mine", "conf/model/mine.yaml")]
)
@pytest.mark.parametrize("option", ["--temp", "--queue"])
def test_a_file_that_such_a_run_could_not_see_is_named_first(project, setting, file, option):
    done = project.run("neural-ngram", "run", option, "-S", setting)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"git does not track {file}" in line
    assert f"`git add {file}`" in line
