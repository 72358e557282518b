"""Write params.yaml from the files of conf/ and Hydra overrides.

Every setting is checked first; when one is wrong, params.yaml stays as it was.
"""

import argparse
from pathlib import Path

from neural_ngram.artifacts import write_text
from neural_ngram.cli.words import tell
from neural_ngram.pipeline.configuration import composed
from neural_ngram.pipeline.overrides import for_hydra

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("overrides", nargs="*", metavar="name=value", help="settings or presets")
    parser.epilog = "examples:\n  neural-ngram compose\n  neural-ngram compose model=bengio"


def run(chosen: argparse.Namespace) -> None:
    """Compose, check, write."""
    overrides = for_hydra(chosen.overrides, Path.cwd() / "conf", tell=tell)
    write_text(Path("params.yaml"), composed(Path.cwd(), overrides))
    print("params.yaml composed; `dvc repro` runs what changed")
