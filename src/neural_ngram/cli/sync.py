"""Send to MLflow what it could not take earlier, in the order in which it happened.

When the project was moved or copied, the addresses in its own store are corrected first.
"""

import argparse

from neural_ngram.pipeline.project import STORE, dvc_root
from neural_ngram.tracking.relocation import relocate
from neural_ngram.tracking.spool import entries

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments."""
    parser.epilog = "examples:\n  neural-ngram sync"


def run(_: argparse.Namespace) -> None:
    """Correct addresses, send, count."""
    moved = relocate(dvc_root())
    if moved:
        print(f"{STORE / 'mlflow.db'} came here with the project: {moved} addresses corrected")
    sent = 0
    if entries():
        from neural_ngram.tracking.sending import synchronise  # noqa: PLC0415 - imports MLflow

        sent = synchronise(print)
    print(f"{sent} entries sent")
