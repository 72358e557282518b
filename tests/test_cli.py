"""The `neural-ngram` command."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from neural_ngram.cli.main import COMMANDS, main
from neural_ngram.settings import TokenizerSettings
from neural_ngram.tokens import tokenizer as tokenizers

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("conf", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_compose_writes_params(project: Path):
    assert main(["compose", "model=bengio"]) == 0
    assert "hidden: tanh" in (project / "params.yaml").read_text()


def test_a_bad_override_leaves_the_old_params_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    (project / "params.yaml").write_text("old")
    assert main(["compose", "model.wdth=3"]) == 1
    assert "model.wdth" in capsys.readouterr().err
    assert (project / "params.yaml").read_text() == "old"


def test_compose_takes_text_as_it_is_typed(project: Path):
    assert main(["compose", "generation.prompt=At night, [she]"]) == 0
    params = yaml.safe_load((project / "params.yaml").read_text())
    assert params["generation"]["prompt"] == "At night, [she]"


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `neural-ngram run` becomes."""
    became = list[str]()
    monkeypatch.setattr("os.execv", lambda _, words: became.extend(words))
    return became


def test_run_hands_everything_on_to_dvc_with_text_quoted(project: Path, handed_on: list[str]):
    options = ["--queue", "-n", "name", "-f", "--", "train"]
    sweep = ["-S", "model=linear,bengio", "-S", "optimizer.learning_rate=0.1,0.2"]
    assert main(["run", *options[:-2], *sweep, "-S", "generation.prompt=a, b", *options[-2:]]) == 0
    assert handed_on[1:5] == ["-m", "dvc", "exp", "run"]
    quoted = [*options[:-2], *sweep, "-S", "generation.prompt='a, b'"]
    assert [word for word in handed_on[5:] if word != "--"] == [*quoted, "train"]


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-S", "training.max_steps=-3"], "training.max_steps is -3, but must be at least 1"),
        (["-S", "training.max_step=3"], "did you mean training.max_steps?"),
        (["-S", "optimizer.learning_rate=0.1,-1", "--queue"], "learning_rate is -1.0, but must"),
        (["-S", "training.max_steps=abc"], "training.max_steps"),
        (["-S", "oracle.order=9"], "oracle.order is 9, but a window holds 5 tokens"),
        (["-S", "generation.prompt=${oc.env:HOME}"], "refers to something else"),
    ],
)
def test_run_refuses_in_one_line_before_dvc_starts(
    project: Path, handed_on: list[str], capsys: pytest.CaptureFixture[str], words: list[str], told
):
    assert main(["run", *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert handed_on == []


@pytest.mark.parametrize("words", [["compose"], ["run"], ["boundary"], ["next", "a"], ["play"]])
def test_another_folder_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words
):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"neural-ngram: {tmp_path} is no root of a project")
    assert list(tmp_path.iterdir()) == []


def test_below_a_project_its_root_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (project / "notes").mkdir()
    monkeypatch.chdir(project / "notes")
    assert main(["sync"]) == 1
    assert capsys.readouterr().err.endswith(f"its root is {project}\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["compose", "corpus.path=${nope}"], "nope"),
        (["next", "a", "--count", "-1"], "is not a non-negative integer"),
        (["neighbours", "a", "--count", "1.5"], "is not a non-negative integer"),
        (["generate", "a", "--typewriter", "-1"], "is not a non-negative number of seconds"),
        (["generate", "a", "--typewriter", "nan"], "is not a non-negative number of seconds"),
    ],
)
def test_a_bad_word_ends_in_one_line_that_names_it(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
):
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err
    assert code != 0
    assert told in said.splitlines()[-1]
    assert "Traceback" not in said


def test_arpa_says_how_it_writes_spaces_and_control_characters(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["arpa", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    characters = tokenizers.learn([" \n\t"], TokenizerSettings(kind="character", markers="none"))
    bpe = tokenizers.learn(["ab"], TokenizerSettings(vocabulary_size=258))
    for character, meaning in ((" ", "a space"), ("\n", "a line feed"), ("\t", "a tab")):
        code_point = characters.names[next(characters.encode([character]))[0]]
        as_byte = bpe.names[next(bpe.encode([character]))[0]]
        assert f"{code_point} {meaning}" in told.replace(" is ", " ")
        assert f"{as_byte} {meaning}" in told.replace(" is ", " ")


def test_sync_corrects_the_addresses_of_a_store_that_was_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "runs").mkdir()
    with closing(sqlite3.connect(tmp_path / "runs/mlflow.db")) as connection, connection:
        connection.execute("CREATE TABLE experiments (artifact_location TEXT)")
        connection.execute("INSERT INTO experiments VALUES ('file:///gone/runs/artifacts')")
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    assert main(["sync"]) == 0
    assert capsys.readouterr().out == (
        "runs/mlflow.db came here with the project: 1 addresses corrected\n0 entries sent\n"
    )


HEAVY = ("torch", "numpy", "pandas", "pyarrow", "hydra", "omegaconf", "mlflow", "dvc", "altair")


def imported(words: list[str], root: Path = ROOT) -> list[str]:
    """Which heavy libraries a new process has imported when a command ends."""
    code = (
        "import sys\nfrom neural_ngram.cli.main import main\n"
        "try:\n    code = main(sys.argv[1:])\nexcept SystemExit as ended:\n    code = ended.code\n"
        f"print(*sorted(set({HEAVY}) & set(sys.modules)), file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stderr.split()


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["parameters", "--vocabulary", "100"], ["next", "-h"]]
)
def test_what_computes_nothing_imports_nothing_heavy(words: list[str]):
    assert imported(words) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_describes_itself_with_examples(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"] if name != "run" else ["run", "-h"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    examples = lines[lines.index("examples:") + 1 :]
    assert examples
    assert all(line.startswith(f"  neural-ngram {name}") for line in examples)


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"neural-ngram {version('neural-ngram')}\n"
