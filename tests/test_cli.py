"""The `neural-ngram` command."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from neural_ngram import tokenizer as tokenizers
from neural_ngram.cli import main
from neural_ngram.settings import TokenizerSettings

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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["compose", "corpus.path=${nope}"], "nope"),
        (["next", "a", "--count", "-1"], "no whole number from 0 on"),
        (["neighbours", "a", "--count", "1.5"], "no whole number from 0 on"),
        (["generate", "a", "--typewriter", "-1"], "no number of seconds from 0 on"),
        (["generate", "a", "--typewriter", "nan"], "no number of seconds from 0 on"),
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
