"""Run an experiment: `dvc exp run`, once the settings are checked and texts quoted for it.

All other options are passed on; `dvc exp run --help` lists them.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from hydra.errors import HydraException

from neural_ngram.cli.words import tell
from neural_ngram.errors import ConfigurationError
from neural_ngram.pipeline.configuration import composed
from neural_ngram.pipeline.overrides import for_dvc

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments; no character begins an option, so that all of them are passed on."""
    parser.add_argument("words", nargs="*", metavar="-S name=value", help="a setting to override")
    parser.set_defaults(print_help=parser.print_help)
    parser.prefix_chars = "\0"
    parser.epilog = (
        "examples:\n"
        "  neural-ngram run -S model=bengio -S optimizer.learning_rate=0.001\n"
        '  neural-ngram run -S generation.prompt="At night, she"\n'
        "  neural-ngram run --queue -S model=linear,bengio"
    )


def run(chosen: argparse.Namespace) -> None:
    """Check what is asked for, and become `dvc exp run`."""
    words: list[str] = chosen.words
    if words[:1] in (["-h"], ["--help"]):
        chosen.print_help()
        sys.exit(0)
    passed, given = for_dvc(words, Path.cwd() / "conf", tell)
    if "--no-hydra" not in words:
        for overrides in _each(given):
            composed(Path.cwd(), overrides)
    if {"--temp", "--queue"} & set(words):
        _require_in_git(given, words)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "dvc", "exp", "run", *passed])


def _require_in_git(given: list[str], words: list[str]) -> None:
    """Raise ConfigurationError for a file that a queued or temporary run could not see.

    DVC runs these in a copy of what git tracks, and of what `--copy-paths` (`-C`) names.
    """
    for name, _, value in (override.partition("=") for override in given):
        path = value.strip("'\"") if name == "corpus.path" else f"conf/{name}/{value}.yaml"
        if path in words or Path(path).is_absolute() or not Path(path).exists():
            continue
        listed = ["git", "ls-files", "--error-unmatch", "--", path]
        if subprocess.run(listed, capture_output=True, check=False).returncode:
            raise ConfigurationError(
                f"git does not track {path}, so a queued or temporary run cannot see it; "
                f"`git add {path}`, or pass it along with `-C {path}`"
            )


def _each(given: list[str]) -> list[list[str]]:
    """The overrides of each experiment, of which DVC queues several where a setting sweeps.

    Raises ConfigurationError for what Hydra cannot read.
    """
    from dvc.utils.hydra import get_hydra_sweeps, to_hydra_overrides  # noqa: PLC0415 (slow)

    try:
        if not any(override.is_sweep_override() for override in to_hydra_overrides(given)):
            return [given]
        return [each["params.yaml"] for each in get_hydra_sweeps({"params.yaml": given})]
    except HydraException as problem:
        raise ConfigurationError(str(problem)) from problem
