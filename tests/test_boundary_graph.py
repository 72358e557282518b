"""No path leads from test to what is learned, nor from validation, and a new one is named."""

import shutil
from pathlib import Path

import pytest

from neural_ngram.cli.main import main
from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.declaration import Declaration, locked
from neural_ngram.pipeline.boundary.graph import prove, walks

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("dvc.yaml", "params.yaml", "dvc.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def declare(project: Path, stage: str, dependency: str, file: str = "dvc.yaml") -> None:
    text = (project / file).read_text()
    head = f"  {stage}:\n"
    place = text.index("    deps:\n", text.index(head)) + len("    deps:\n")
    entry = f"      - {dependency}\n" if file == "dvc.yaml" else f"    - path: {dependency}\n"
    (project / file).write_text(text[:place] + entry + text[place:])


@pytest.mark.promise("boundary")
def test_the_project_itself_holds_and_its_paths_are_printed(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["boundary"]) == 0
    printed = capsys.readouterr().out
    assert "test: no path to artifacts/tokenizer, data/windows, artifacts/model" in printed
    assert "artifacts/split → evaluate → " in printed
    assert "data/windows/validation ↛ artifacts/model in train: scored, not learned" in printed


@pytest.mark.promise("boundary")
@pytest.mark.parametrize(
    ("stage", "dependency", "path"),
    [
        ("train", "data/splits/test.parquet", "test.parquet → train → artifacts/model"),
        ("learn-bpe", "data/splits/test.parquet", "test.parquet → learn-bpe → artifacts/tokenizer"),
        ("learn-bpe", "data/splits", "test.parquet → learn-bpe → artifacts/tokenizer"),
        ("build-windows", "data/splits/test.parquet", "build-windows → data/windows/train"),
        ("train", "data/splits/manifest.csv", "manifest.csv → train → artifacts/model"),
        ("train", "data/splits/validation.parquet", "validation.parquet → train → artifacts/model"),
        (
            "learn-bpe",
            "data/splits/validation.parquet",
            "data/splits/validation.parquet → learn-bpe → artifacts/tokenizer",
        ),
        ("train", "artifacts/evaluation/metrics.json", "evaluation/metrics.json → train → "),
    ],
)
def test_a_forbidden_dependency_fails_and_the_path_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], stage: str, dependency: str, path: str
):
    declare(project, stage, dependency)
    assert main(["boundary"]) == 1
    assert path in capsys.readouterr().err


@pytest.mark.promise("boundary")
@pytest.mark.parametrize(
    ("dependency", "told"),
    [
        ("data/splits/../splits/test.parquet", "test.parquet → train → artifacts/model"),
        ("alias/splits/test.parquet", "test.parquet → train → artifacts/model"),
        ("data/corpus/embedded.jsonl", "only split-corpus reads the corpus"),
        ("data/raw", "only split-corpus reads the corpus"),
        (".dvc/cache", "no stage reads DVC's copies"),
    ],
)
@pytest.mark.parametrize("file", ["dvc.yaml", "dvc.lock"])
def test_another_spelling_and_what_no_declaration_opens_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], dependency: str, told: str, file: str
):
    (project / "data").mkdir()
    (project / "alias").symlink_to("data")
    declare(project, "train", dependency, file=file)
    assert main(["boundary"]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.promise("boundary")
def test_a_way_through_a_folder_below_or_a_new_stage_is_found(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    (project / "plugin").mkdir()
    (project / "plugin/dvc.yaml").write_text(
        "stages:\n  peek:\n    foreach: [a]\n    do:\n      cmd: peek\n"
        "      deps: [../data/splits/test.parquet]\n      outs: [hints.json]\n"
    )
    declare(project, "train", "plugin/hints.json")
    assert main(["boundary"]) == 1
    told = capsys.readouterr().err
    assert "test.parquet → plugin/dvc.yaml:peek@a → plugin/hints.json → train → " in told


@pytest.mark.promise("boundary")
@pytest.mark.parametrize(
    ("stage", "dependency"),
    [
        ("evaluate", "data/splits/test.parquet"),
        ("generate", "data/splits/test.parquet"),
        ("generate", "artifacts/test/metrics.json"),
        ("generate", "artifacts/test"),
    ],
)
def test_only_evaluate_test_reads_test(
    project: Path, capsys: pytest.CaptureFixture[str], stage: str, dependency: str
):
    for file in ("dvc.lock", "dvc.yaml"):
        before = (project / file).read_text()
        declare(project, stage, dependency, file)
        assert main(["boundary"]) == 1
        assert f"{stage} reads {dependency}, so what it writes" in capsys.readouterr().err
        (project / file).write_text(before)
    assert main(["boundary"]) == 0


@pytest.mark.promise("boundary")
@pytest.mark.parametrize(("flag", "weaker"), [("cache: false, ", ""), (", persist: true", "")])
def test_figures_on_test_that_would_enter_the_cache_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], flag: str, weaker: str
):
    text = (project / "dvc.yaml").read_text()
    place = text.index("artifacts/test/figures.json")
    changed = text[:place] + text[place:].replace(flag, weaker, 1)
    (project / "dvc.yaml").write_text(changed)
    assert main(["boundary"]) == 1
    assert "artifacts/test/figures.json of evaluate-test would enter" in capsys.readouterr().err


@pytest.mark.promise("boundary")
def test_what_ran_is_judged_too(project: Path, capsys: pytest.CaptureFixture[str]):
    declare(project, "learn-bpe", "data/splits/test.parquet", file="dvc.lock")
    assert main(["boundary"]) == 1
    assert "test.parquet → learn-bpe → artifacts/tokenizer" in capsys.readouterr().err


def test_a_damaged_lock_file_is_an_error_and_a_missing_one_is_empty(tmp_path: Path):
    assert locked(tmp_path) == []
    (tmp_path / "dvc.lock").write_text("stages: [1, 2]")
    with pytest.raises(BoundaryError, match=r"dvc\.lock cannot be read"):
        locked(tmp_path)


def test_paths_end_although_stages_form_a_circle():
    circle = [Declaration("a", ("x",), ("y",)), Declaration("b", ("y",), ("x",))]
    assert list(walks(circle, "x")) == [("x", "a", "y"), ("x", "a", "y", "b", "x")]
    assert prove(circle) == {"test": [], "validation": []}
