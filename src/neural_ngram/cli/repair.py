"""Delete DVC files that a killed process left half-written.

Only what DVC makes anew is deleted; afterwards the command that was interrupted can be run again.
"""

import argparse
import os
from pathlib import Path

from neural_ngram.pipeline.repair import repair

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments."""
    parser.epilog = "examples:\n  neural-ngram repair"


def run(_: argparse.Namespace) -> None:
    """Delete, and name what was deleted."""
    root = Path.cwd()
    for path in (broken := repair(root)):
        print(f"{os.path.relpath(path, root)}: half-written, deleted; run the same command again")
    if not broken:
        print("DVC's own files are whole")
