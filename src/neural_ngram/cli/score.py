"""Score a text by the model of the last run, its baseline and their interpolation.

A file is read as the corpus was, by its ending and the settings of params.yaml; the partitions
data/splits/train.parquet and validation.parquet can be given too. Each line of standard input (-)
is a document. What belongs to the sealed test partition is refused.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from neural_ngram.cli.last_run import current_settings
from neural_ngram.cli.words import table
from neural_ngram.corpus.document import Document
from neural_ngram.corpus.formats import READERS
from neural_ngram.errors import ArtifactError, BoundaryError, ConfigurationError
from neural_ngram.pipeline.project import MODEL, SPLITS

if TYPE_CHECKING:
    from neural_ngram.library.model import LanguageModel
    from neural_ngram.library.scorer import Score

__all__ = ["add", "run"]

ENDINGS = (*READERS, ".parquet")
UNSEAL = (
    "`dvc exp run -S evaluation.unseal_test=true` scores that partition and records the "
    "evaluation in ledger.jsonl"
)


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument(
        "text", metavar="FILE|TEXT|-", help="a file or folder, a text, or - for standard input"
    )
    parser.add_argument(
        "--tokens", action="store_true", help="add a table of each token's log probability"
    )
    parser.epilog = (
        'examples:\n  neural-ngram score "At night" --tokens\n'
        "  neural-ngram score data/splits/validation.parquet"
    )


def run(chosen: argparse.Namespace) -> None:
    """A row per model; with --tokens, a row per token as well."""
    texts = _texts(chosen.text)
    if not MODEL.exists():
        raise ArtifactError(f"there is no model in {MODEL} yet; run `dvc repro` first")
    from neural_ngram.library.folder import load  # noqa: PLC0415 - imports torch

    scores = _scores(load(MODEL.parents[1]), texts)
    if chosen.tokens:
        print(_tokens(scores), end="\n\n")
    header = ("scored by", "tokens", "unknown", "nats", "per token", "perplexity", "bits per byte")
    print(table(header, [_row(name, score) for name, score in scores.items()]))


def _scores(model: "LanguageModel", texts: list[str]) -> "dict[str, Score]":
    """Of the model, and of what there is to compare it with."""
    scores = {"model": model.score(texts)}
    try:
        others = {"baseline": model.baseline, "interpolation": model.interpolated}
    except ArtifactError:
        return scores
    return scores | {name: each.score(texts) for name, each in others.items()}


def _row(name: str, score: "Score") -> tuple[object, ...]:
    return (
        name,
        f"{len(score.tokens):,}",
        f"{int(score.unknown.sum()):,}",
        f"{score.nats:.4f}",
        f"{score.loss_nats:.4f}",
        f"{score.perplexity:.2f}",
        f"{score.bits_per_byte:.4f}",
    )


def _tokens(scores: "dict[str, Score]") -> str:
    """Natural logarithms of the probabilities, a column per model."""
    first = scores["model"]
    columns = [score.log_probabilities for score in scores.values()]
    rows: list[tuple[object, ...]] = [
        (label, identifier, *(f"{each:.4f}" for each in logs), "unknown" if unknown else "")
        for label, identifier, unknown, *logs in zip(
            first.labels, first.tokens, first.unknown, *columns, strict=True
        )
    ]
    return table(("token", "ID", *scores, ""), rows)


def _texts(given: str) -> list[str]:
    """The texts of the documents; raises BoundaryError when test documents are among them."""
    path = Path(given)
    if given == "-":
        documents = _documents(line for line in sys.stdin.read().splitlines() if line.strip())
    elif _is_there(path):
        documents = _read(path)
    elif path.suffix.lower() in ENDINGS:
        raise ConfigurationError(
            f"there is no file {given}; correct its name (a text that looks like a file name can "
            "be given on standard input, by -)"
        )
    else:
        documents = _documents([given])
    _require_no_test(documents, given)
    return [document.text for document in documents]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a text that is too long for a name, or holds NUL
        return False


def _documents(texts: Iterable[str]) -> list[Document]:
    return [Document(id=str(number), text=text) for number, text in enumerate(texts, start=1)]


def _read(path: Path) -> list[Document]:
    from neural_ngram.artifacts import Column  # noqa: PLC0415
    from neural_ngram.corpus.reading import read_corpus  # noqa: PLC0415

    test = SPLITS / "test.parquet"
    if test.exists() and path.samefile(test):
        raise BoundaryError(f"{path} is the sealed test partition; {UNSEAL}")
    if path.suffix == ".parquet":
        return _documents(Column(path, "text"))
    settings = current_settings().corpus
    corpus = read_corpus(
        path,
        unit=settings.unit,
        encoding=settings.encoding,
        files=settings.files,
        document_mark=settings.document_mark,
        paragraph_mark=settings.paragraph_mark,
    )
    return corpus.documents


def _require_no_test(documents: list[Document], given: str) -> None:
    """Raise BoundaryError when a document has the text of one that is in test alone.

    The manifest of the split knows each document by the hash of its text, so that a copy of the
    partition, or the corpus that it was cut from, is recognised without reading the partition.
    """
    from neural_ngram.artifacts import read_csv  # noqa: PLC0415
    from neural_ngram.corpus.partition import text_sha256  # noqa: PLC0415

    manifest = SPLITS / "manifest.csv"
    if not manifest.exists():
        return
    known = read_csv(manifest)
    in_test = known["partition"] == "test"
    sealed = set(known["sha256"][in_test]) - set(known["sha256"][~in_test])
    found = sum(text_sha256(document) in sealed for document in documents)
    if found:
        what = given if found > 1 or len(documents) > 1 else "this text"
        raise BoundaryError(
            f"{what} holds {found:,} of the documents of the sealed test partition "
            f"({len(documents):,} read); {UNSEAL}"
        )
