"""Compare the size of the last run's model with tables of counts for the same vocabulary.

A table that counts what follows each context of k tokens has V^(k + 1) cells.
"""

import argparse

from neural_ngram.cli.words import natural, table
from neural_ngram.ngram.sizes import table_sizes

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument(
        "--vocabulary", type=natural, metavar="V", help="vocabulary size; no model is needed then"
    )
    parser.epilog = (
        "examples:\n  neural-ngram parameters\n  neural-ngram parameters --vocabulary 50257"
    )


def run(chosen: argparse.Namespace) -> None:
    """A table of sizes; the model comes last."""
    size, own = (chosen.vocabulary, []) if chosen.vocabulary is not None else _of_last_run()
    rows: list[tuple[object, ...]] = [
        (name.replace("_", "-"), f"{cells:,}") for name, cells in table_sizes(size, 3).items()
    ]
    print(table((f"V = {size:,}", "parameters"), [*rows, *own]))


def _of_last_run() -> tuple[int, list[tuple[object, ...]]]:
    """The vocabulary size of the last run's model, and its row."""
    from neural_ngram.cli.last_run import last_run  # noqa: PLC0415 - imports torch
    from neural_ngram.model.architecture import parameter_count  # noqa: PLC0415

    architecture = last_run().model.architecture
    return architecture.vocabulary_size, [("this model", f"{parameter_count(architecture):,}")]
