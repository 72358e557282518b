"""Test documents are sealed; unsealing them scores them, shows in the graph and is on record."""

import json
import re
import shutil
import traceback
from pathlib import Path

import pandas as pd
import pytest

from neural_ngram import tokenizer as tokenizers
from neural_ngram.artifacts import write_table
from neural_ngram.boundary.declaration import locked
from neural_ngram.boundary.graph import prove
from neural_ngram.errors import TokenizerError
from neural_ngram.ledger import read
from neural_ngram.settings import EvaluationSettings, Settings, TokenizerSettings
from neural_ngram.stages import TOKENIZER
from neural_ngram.stages.unsealed import read_test

UNSEALED = "evaluation.unseal_test=true"


@pytest.fixture(scope="module")
def project(pipeline, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("unsealed") / "copy"
    shutil.copytree(pipeline.folder, folder, symlinks=True)
    return type(pipeline)(folder)


def metrics(project) -> dict:
    return json.loads((project.folder / "artifacts/evaluation/figures.json").read_text())


def reads_test(project) -> bool:
    (evaluate,) = [ran for ran in locked(project.folder) if ran.stage == "evaluate"]
    return "data/splits/test.parquet" in evaluate.reads


@pytest.mark.promise("boundary")
def test_a_look_is_scored_and_recorded_once_and_sealing_takes_the_score_away(project):
    assert "test" not in metrics(project)
    assert not reads_test(project)
    project.experiment()
    sealed = (project.folder / "dvc.lock").read_bytes()
    ledger = project.folder / "ledger.jsonl"
    assert ledger.read_text() == ""

    printed = project.experiment(UNSEALED)
    assert "look 1 at this partition" in printed
    found = metrics(project)
    (line,) = read(ledger)
    assert line["loss_nats"] == found["test"]["loss_nats"]
    assert line["commit"] == project.run("git", "rev-parse", "HEAD").stdout.strip()
    own = {"looks", "kneser_ney", "mixture"}
    assert found["test"].keys() == found["validation"].keys() - {"calibration_error"} | own
    weights = [part["mixture"]["tuned"]["model_weight"] for part in (found, found["test"])]
    assert weights[0] == weights[1]
    assert found["test"]["looks"] == 1
    assert reads_test(project)
    prove(locked(project.folder))

    assert "up to date" in project.dvc("repro")
    project.dvc("repro", "--force", "--single-item", "evaluate")
    assert len(read(ledger)) == 1

    project.experiment()
    assert "test" not in metrics(project)
    assert (project.folder / "dvc.lock").read_bytes() == sealed
    assert len(read(ledger)) == 1


@pytest.mark.promise("boundary")
@pytest.mark.slow
def test_a_look_from_a_temporary_run_lands_in_the_main_ledger(project):
    before = len(read(project.folder / "ledger.jsonl"))
    printed = project.experiment(UNSEALED, "training.seed=99", options=("--temp",))
    assert f"look {before + 1} at this partition" in printed
    assert len(read(project.folder / "ledger.jsonl")) == before + 1


@pytest.mark.promise("boundary")
def test_a_tampered_ledger_stops_the_next_look(project, tmp_path: Path):
    shutil.copytree(project.folder, tmp_path / "copy", symlinks=True)
    copy = type(project)(tmp_path / "copy")
    ledger = copy.folder / "ledger.jsonl"
    ledger.write_text(re.sub(r'"loss_nats": [\d.]+', '"loss_nats": 0.1', ledger.read_text()))
    overrides = (UNSEALED, "evaluation.test_documents=data/splits/test.parquet")
    done = copy.stage("evaluate", *overrides)
    assert done.returncode == 1
    assert "ledger.jsonl line 1 was changed after it was written" in done.stderr


@pytest.mark.promise("boundary")
def test_unsealing_past_the_graph_is_refused(project):
    done = project.stage("evaluate", UNSEALED)
    assert done.returncode == 1
    assert "dvc exp run -S evaluation.unseal_test=true" in done.stderr


def test_a_word_that_train_lacks_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    asked = Settings(
        tokenizer=TokenizerSettings(kind="word"),
        evaluation=EvaluationSettings(test_documents="test.parquet", unseal_test=True),
    )
    tokenizers.save(tokenizers.learn(["seen words", "seen again"], asked.tokenizer), TOKENIZER)
    write_table(Path("test.parquet"), pd.DataFrame({"text": ["a secretword"]}))
    with pytest.raises(TokenizerError, match="sealed text is not shown") as caught:
        read_test(asked)
    assert "secretword" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.promise("boundary")
def test_no_output_or_log_holds_a_sentence_of_the_test_documents(project):
    texts = project.run(
        "python",
        "-c",
        "import pandas as pd; "
        "print(*pd.read_parquet('data/splits/test.parquet')['text'], sep='\\n')",
    ).stdout.splitlines()
    pieces = {text[start : start + 40] for text in texts for start in range(0, len(text) - 40, 20)}
    assert len(pieces) > 100
    shown = [project.first_output] if hasattr(project, "first_output") else []
    for folder in ("artifacts", "runs/artifacts"):
        files = [path for path in (project.folder / folder).rglob("*") if path.is_file()]
        shown += [path.read_bytes().decode("utf-8", "replace") for path in files]
    assert shown
    for text in shown:
        assert not [piece for piece in pieces if piece in text]
