"""The `neural-ngram` command."""

import argparse
import sys
from pathlib import Path

from hydra.errors import HydraException

from neural_ngram.artifacts import write_text
from neural_ngram.configuration import composed
from neural_ngram.errors import NeuralNgramError

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns the exit code."""
    parser = argparse.ArgumentParser(prog="neural-ngram", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    compose = commands.add_parser(
        "compose", help="write params.yaml from conf/ and Hydra overrides (model=bengio …)"
    )
    compose.add_argument("overrides", nargs="*", metavar="key=value")
    chosen = parser.parse_args(arguments)
    try:
        _compose(chosen.overrides)
    except (NeuralNgramError, HydraException) as problem:
        print(f"neural-ngram: {problem}", file=sys.stderr)
        return 1
    return 0


def _compose(overrides: list[str]) -> None:
    write_text(Path("params.yaml"), composed(Path.cwd(), overrides))
    print("params.yaml composed; `dvc repro` runs what changed")
