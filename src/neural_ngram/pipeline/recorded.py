"""Figures on test and their lines in the ledger: neither is read without the other."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from neural_ngram.artifacts import read_json, sha256_of_file
from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.ledger import Evaluation, Line, confirm, reconciled
from neural_ngram.pipeline.project import (
    LEDGER,
    MODEL,
    SPLIT_REPORT,
    SPLITS,
    STORE,
    TEST,
    TOKENIZER,
    dvc_root,
    git_commit,
)

__all__ = ["SUBJECT", "entry_of", "lines", "require_recorded", "test_figures"]

STAGE = "evaluate-test"
FIGURES, METRICS = TEST / "figures.json", TEST / "metrics.json"
SUBJECT = ("model_sha256", "tokenizer_sha256", "corpus_sha256")  # what was scored


def entry_of(figures: Mapping[str, Any]) -> Evaluation:
    """What the ledger records of these figures on test of the project's model, as of now."""
    return Evaluation(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=git_commit(),
        model_sha256=sha256_of_file(MODEL),
        tokenizer_sha256=sha256_of_file(TOKENIZER / "tokenizer.json"),
        corpus_sha256=read_json(SPLIT_REPORT)["manifest_sha256"],
        loss_nats=figures["loss_nats"],
        tokens=figures["tokens"],
    )


def lines() -> list[Line]:
    """All lines of the project's ledger; raises BoundaryError as `reconciled` does."""
    root = dvc_root()
    (root / STORE).mkdir(exist_ok=True)
    return reconciled(root / LEDGER, root / STORE)


def test_figures() -> dict[str, Any] | None:
    """What evaluate-test measured, with the hashes of what was scored; None while test is sealed.

    Raises BoundaryError when no line of the ledger records it.
    """
    content = read_json(FIGURES) if FIGURES.exists() else {}
    if not isinstance(content.get("test"), Mapping):
        return None
    subject = {key: content[key] for key in SUBJECT}
    measured = {key: content["test"][key] for key in ("loss_nats", "tokens")}
    confirm(lines(), subject | measured, FIGURES)
    return content


def require_recorded(root: Path) -> None:
    """Raise BoundaryError when a figure on test, here or in dvc.lock, lacks its line."""
    test_figures()
    shown = read_json(METRICS).get("test") if METRICS.exists() else None
    if isinstance(shown, Mapping):
        confirm(lines(), {"loss_nats": shown["loss_nats"]}, METRICS)
    for name, md5 in _unsealed_outputs(root / "dvc.lock").items():
        path = root / name
        if not path.exists() or hashlib.md5(path.read_bytes()).hexdigest() != md5:
            raise BoundaryError(
                f"dvc.lock records a test evaluation whose figures are not those of {name}, so no "
                "line of the ledger can be found for it; run `dvc repro`, or restore dvc.lock, "
                f"{TEST} and {LEDGER} together with git"
            )


def _unsealed_outputs(lock: Path) -> dict[str, str]:
    """MD5, as DVC has it, of each output of evaluate-test, if that read test when it last ran."""
    stages = yaml.safe_load(lock.read_bytes())["stages"] if lock.exists() else {}
    ran = stages.get(STAGE, {})
    if not any(dep["path"] == str(SPLITS / "test.parquet") for dep in ran.get("deps", ())):
        return {}
    return {out["path"]: out["md5"] for out in ran.get("outs", ())}
