"""What Python and `neural-ngram score` say of a finished pipeline is what its stages said."""

import json
from pathlib import Path

import pandas as pd

import neural_ngram


def figures(folder: Path, name: str) -> dict:
    return json.loads((folder / "artifacts" / name / "figures.json").read_text())


def test_scores_agree_with_evaluate_to_the_last_digit(pipeline):
    model = neural_ngram.load(pipeline.folder / "artifacts")
    measured, counted = figures(pipeline.folder, "evaluation"), figures(pipeline.folder, "oracle")
    for name in ("train", "validation"):
        texts = pd.read_parquet(pipeline.folder / f"data/splits/{name}.parquet")["text"].tolist()
        score = model.score(texts)
        for figure in ("loss_nats", "perplexity", "bits_per_byte"):
            assert getattr(score, figure) == measured[name][figure]
        baseline = model.baseline.score(texts)
        assert baseline.loss_nats == counted["kneser_ney"][name]["loss_nats"]
    assert (
        model.interpolated.score(texts).loss_nats == measured["interpolated"]["tuned"]["loss_nats"]
    )
    assert model.floor == counted["oracle"]["k4"]["entropy_nats"]


def test_the_command_scores_validation_and_refuses_test(pipeline):
    ledger = (pipeline.folder / "ledger.jsonl").read_bytes()
    done = pipeline.run("neural-ngram", "score", "data/splits/validation.parquet")
    assert done.returncode == 0, done.stderr
    loss = figures(pipeline.folder, "evaluation")["validation"]["loss_nats"]
    assert f"{loss:.4f}" in done.stdout.splitlines()[1].split()
    for sealed in ("data/splits/test.parquet", "data/corpus/embedded.jsonl"):
        done = pipeline.run("neural-ngram", "score", sealed)
        assert (done.returncode, done.stdout) == (1, "")
        assert "dvc exp run -S evaluation.unseal_test=true" in done.stderr
        assert done.stderr.count("\n") == 1
    assert (pipeline.folder / "ledger.jsonl").read_bytes() == ledger
