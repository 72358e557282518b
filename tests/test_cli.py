"""The `neural-ngram` command."""

from pathlib import Path

import pytest

from neural_ngram.cli import main

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
