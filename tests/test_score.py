"""`neural-ngram score`: model, baseline and interpolation; test stays sealed."""

import hashlib
import io
import shutil
from pathlib import Path

import pandas as pd
import pytest

import neural_ngram
from neural_ngram.artifacts import write_csv, write_json, write_table
from neural_ngram.cli.main import main
from neural_ngram.library.model import LanguageModel

ROOT = Path(__file__).parents[1]
SPLIT = {
    "train": ["abcab", "bcabc", "cabca", "abca"],
    "validation": ["bcab", "caab"],
    "test": ["cbbac", "abca"],  # the second occurs in train as well
}
UNSEAL = "`dvc exp run -S evaluation.unseal_test=true`"


@pytest.fixture(scope="module")
def fitted() -> LanguageModel:
    texts = [text for part in SPLIT.values() for text in part]
    return neural_ngram.fit(
        texts, kind="character", context_length=2, max_steps=30, hidden_width=8, method="whole"
    )


@pytest.fixture
def project(fitted: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a finished pipeline, as far as `score` reads them."""
    for name in ("conf", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    assert main(["compose"]) == 0
    made = fitted.save(tmp_path / "made")
    (tmp_path / "artifacts/model").mkdir(parents=True)
    for file in made.glob("model.safetensors*"):
        shutil.copy(file, tmp_path / "artifacts/model")
    (tmp_path / "artifacts/tokenizer").mkdir()
    shutil.copy(made / "tokenizer.json", tmp_path / "artifacts/tokenizer")
    (tmp_path / "artifacts/oracle").mkdir()
    shutil.copy(made / "kneser_ney.safetensors", tmp_path / "artifacts/oracle")
    digest = hashlib.sha256((made / "model.safetensors").read_bytes()).hexdigest()
    figures = dict(fitted.figures)
    counted = {name: figures.pop(name) for name in ("oracle", "kneser_ney")}
    write_json(tmp_path / "artifacts/oracle/figures.json", counted)
    write_json(tmp_path / "artifacts/evaluation/figures.json", figures | {"model_sha256": digest})
    rows = []
    for name, texts in SPLIT.items():
        write_table(tmp_path / f"data/splits/{name}.parquet", pd.DataFrame({"text": texts}))
        rows += [(name, hashlib.sha256(text.encode()).hexdigest()) for text in texts]
    write_csv(
        tmp_path / "data/splits/manifest.csv", pd.DataFrame(rows, columns=["partition", "sha256"])
    )
    return tmp_path


def rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}


def test_a_text_has_a_row_per_model(project, fitted, capsys):
    capsys.readouterr()
    assert main(["score", "bcab"]) == 0
    found = rows(capsys.readouterr().out)
    for name, of in (
        ("model", fitted),
        ("baseline", fitted.baseline),
        ("interpolation", fitted.interpolated),
    ):
        score = of.score("bcab")
        expected = [
            score.nats,
            score.nats / 5,
            score.perplexity,
            score.nats / 4 / 0.693147180559945,
        ]
        assert found[name][:2] == ["5", "0"]
        assert [float(each) for each in found[name][2:]] == pytest.approx(expected, abs=5.1e-3)


def test_a_row_per_token_adds_up(project, capsys):
    capsys.readouterr()
    assert main(["score", "bcab", "--tokens"]) == 0
    tokens, totals = capsys.readouterr().out.split("\n\n")
    lines = [line.split() for line in tokens.splitlines()[1:]]
    assert [line[0] for line in lines] == ["b", "c", "a", "b", "<end"]
    for column, name in enumerate(("model", "baseline", "interpolation"), start=-3):
        total = -sum(float(line[column]) for line in lines)
        assert total == pytest.approx(float(rows(totals)[name][2]), abs=1e-3)


def test_a_file_standard_input_and_a_partition_score_alike(project, monkeypatch, capsys):
    (project / "mine.txt").write_text("bcab\ncaab\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("bcab\n\ncaab\n"))
    capsys.readouterr()
    answers = []
    for given in ("mine.txt", "-", "data/splits/validation.parquet"):
        assert main(["score", given]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] == answers[2]
    assert rows(answers[0])["model"][0] == "10"


def test_the_test_partition_is_refused_wherever_it_comes_from(project, monkeypatch, capsys):
    shutil.copy("data/splits/test.parquet", "copy.parquet")
    Path("link.parquet").symlink_to("data/splits/test.parquet")
    Path("corpus.txt").write_text("bcab\ncbbac\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("cbbac\n"))
    given = ["data/splits/test.parquet", "copy.parquet", "link.parquet", "corpus.txt", "-", "cbbac"]
    for each in given:
        capsys.readouterr()
        assert main(["score", each]) == 1, each
        out, err = capsys.readouterr()
        assert out == ""
        assert UNSEAL in err
        assert err.count("\n") == 1


def test_a_text_that_train_holds_as_well_is_scored(project):
    assert main(["score", "abca"]) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere.txt", "there is no file nowhere.txt"),
        ("abd", "'d' in text 1 is not in the vocabulary"),
        ("data/splits", "data/splits"),
    ],
)
def test_what_cannot_be_scored_is_said_in_one_line(project, capsys, given, message):
    capsys.readouterr()
    assert main(["score", given]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_without_a_model_the_command_says_what_to_run(project, capsys):
    shutil.rmtree("artifacts")
    assert main(["score", "bcab"]) == 1
    assert "run `dvc repro` first" in capsys.readouterr().err


def test_figures_of_another_model_are_not_used(project, capsys):
    figures = project / "artifacts/evaluation/figures.json"
    figures.write_text(figures.read_text().replace('"model_sha256": "', '"model_sha256": "0'))
    capsys.readouterr()
    assert main(["score", "bcab"]) == 0
    assert set(rows(capsys.readouterr().out)) == {"scored", "model"}
