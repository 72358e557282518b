"""Train, inspect and export small fixed-context language models, reproducibly."""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from neural_ngram.cli.words import Help, fill
from neural_ngram.errors import ConfigurationError, NeuralNgramError
from neural_ngram.pipeline.console import escape, require_text

__all__ = ["COMMANDS", "main"]

PARTS = ("dvc.yaml", "params.yaml", "conf", ".dvc")
COMMANDS = {
    "compose": ("compose", "write params.yaml from conf/ and overrides (model=bengio …)"),
    "run": ("run", "run an experiment with DVC, once its settings (-S name=value) are checked"),
    "generate": ("generate", "continue a prompt, token by token"),
    "next": ("next", "show the most probable next tokens after a prompt"),
    "score": ("score", "score a text by the model, its baseline and their interpolation"),
    "neighbours": ("neighbours", "show the nearest tokens in embedding space"),
    "parameters": ("parameters", "compare the size of the model with tables of counts"),
    "embedding": ("embedding", "draw the embedding table as a PNG picture"),
    "play": ("playground.play", "open a page to play with trained models"),
    "report": ("report", "write a page with the results of the last run"),
    "export": ("export", "write the model for other programs"),
    "arpa": ("arpa", "write the count model of the last run in ARPA format"),
    "range": ("learning_rate", "run a learning-rate range test with the current settings"),
    "boundary": ("boundary", "prove that test data reaches neither model nor tokenizer"),
    "sync": ("sync", "send to MLflow what it could not take earlier"),
    "repair": ("repair", "delete DVC files that a killed process left half-written"),
    "settings": ("settings", "write docs/settings.md, the reference of all settings"),
    "results": ("results", "write docs/results.md from the runs in MLflow"),
}
EPILOG = """`neural-ngram COMMAND --help` explains a command and gives examples.

examples:
  neural-ngram run -S model=bengio -S optimizer.learning_rate=0.001
  neural-ngram generate "At night" generation.temperature=0.5
  neural-ngram report"""


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    escape()
    try:
        chosen = _parser(words).parse_args(words)
        require_text(words)
        if not getattr(chosen, "vocabulary", None):
            _require_project(Path.cwd())
        chosen.run(chosen)
    except (NeuralNgramError, OSError) as problem:
        print(f"neural-ngram: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("neural-ngram: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """All commands by name; only the module of the chosen one, the first word, is imported."""
    parser = argparse.ArgumentParser(
        prog="neural-ngram", description=__doc__, epilog=EPILOG, formatter_class=Help
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for name, (module, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, formatter_class=Help)
        if words[:1] == [name]:
            _define(command, import_module(f"neural_ngram.cli.{module}"))
    return parser


class _Version(argparse.Action):
    """Look the installed version up when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slow to import

        print(f"neural-ngram {version('neural-ngram')}")
        parser.exit()


def _define(command: argparse.ArgumentParser, module: ModuleType) -> None:
    """The arguments of a command, and its description: the docstring of its module."""
    command.description = fill(module.__doc__ or "")
    command.set_defaults(run=module.run)
    module.add(command)


def _require_project(folder: Path) -> None:
    """Raise ConfigurationError when nothing of a project lies in a folder."""
    if _is_project(folder):
        return
    root = next(filter(_is_project, folder.parents), None)
    hint = f"its root is {root}" if root else "change to the folder that holds dvc.yaml"
    raise ConfigurationError(f"{folder} is no root of a project ({', '.join(PARTS)}); {hint}")


def _is_project(folder: Path) -> bool:
    return any((folder / part).exists() for part in PARTS)
