"""Show the tokens nearest to one in the embedding space of the last run's model."""

import argparse

from neural_ngram.cli.last_run import last_run
from neural_ngram.cli.words import natural, table
from neural_ngram.export.neighbours import nearest

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("token", help="its text, or its ID written as #12")
    parser.add_argument("--count", type=natural, default=10, help="number of tokens (default 10)")
    parser.epilog = "examples:\n  neural-ngram neighbours ' the'\n  neural-ngram neighbours '#12'"


def run(chosen: argparse.Namespace) -> None:
    """A table, nearest first."""
    trained = last_run()
    embedding_VD = trained.model.parameters["embedding"].numpy()
    rows: list[tuple[object, ...]] = [
        (trained.tokenizer.label(n.token), n.token, f"{n.cosine:.4f}", f"{n.distance:.4f}")
        for n in nearest(embedding_VD, trained.tokenizer.look_up(chosen.token), chosen.count)
    ]
    print(table(("token", "ID", "cosine", "distance"), rows))
