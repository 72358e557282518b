"""Which edits of the code re-run which stages, as DVC itself answers."""

import json
import shutil
from pathlib import Path

import pytest

COSTLY = ("split-corpus", "learn-bpe", "build-windows", "train")
SURROUND = ("cli", "pipeline", "tracking", "export", "training/progress.py", "settings.py")


@pytest.fixture
def project(pipeline, tmp_path: Path):
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    return type(pipeline)(tmp_path / "copy")


def comment(project, *places: str) -> None:
    """Add a comment to every module of the rooms, or to single modules."""
    for place in places:
        path = project.folder / "src/neural_ngram" / place
        for file in [path] if path.is_file() else path.rglob("*.py"):
            with file.open("a") as module:
                module.write("# A comment.\n")


def changed(project) -> set[str]:
    """The stages that a dependency has changed of, and not only a stage before them."""
    done = project.run("dvc", "status", "--json")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def code_sha256(project) -> str:
    code = "from neural_ngram.pipeline.project import code_sha256; print(code_sha256('train'))"
    done = project.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_edit_of_what_surrounds_the_stages_trains_nothing_again(project):
    identity = code_sha256(project)
    comment(project, *SURROUND, "generation")
    assert changed(project).isdisjoint(COSTLY)
    assert code_sha256(project) == identity  # so that checkpoints are found again


@pytest.mark.parametrize(
    ("place", "stages"),
    [
        ("ngram/entropy.py", {"oracle-conditional-entropy", "evaluate", "evaluate-test"}),
        ("corpus/partition.py", {"split-corpus"}),
        ("generation/sampling.py", {"generate"}),
        ("evaluation/scoring.py", {"train", "evaluate", "evaluate-test", "generate"}),
    ],
)
def test_an_edit_of_what_computes_runs_the_stages_that_use_it(project, place, stages):
    comment(project, place)
    assert changed(project) == stages


def test_an_edit_of_what_trains_is_another_training(project):
    identity = code_sha256(project)
    comment(project, "training/optimizer.py")
    assert changed(project) == {"train"}
    assert code_sha256(project) != identity
