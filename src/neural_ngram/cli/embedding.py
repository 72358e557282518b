"""Draw the embedding table of the last run's model as a PNG picture, each token at its place."""

import argparse
from pathlib import Path

from neural_ngram.artifacts import write_bytes
from neural_ngram.cli.last_run import last_run
from neural_ngram.export.charts import embedding_chart, png
from neural_ngram.export.neighbours import principal_plane

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("file", type=Path, help="the file to write")
    parser.epilog = "examples:\n  neural-ngram embedding embedding.png"


def run(chosen: argparse.Namespace) -> None:
    """Write the picture and say how much of the variance it shows."""
    trained = last_run()
    plane_V2, share = principal_plane(trained.model.parameters["embedding"].numpy())
    labels = [trained.tokenizer.label(token) for token in range(len(plane_V2))]
    write_bytes(chosen.file, png(embedding_chart(plane_V2, labels, share)))
    print(f"{chosen.file}: {len(labels):,} tokens, {share:.1%} of the variance of their embeddings")
