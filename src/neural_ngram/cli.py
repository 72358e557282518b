"""The `neural-ngram` command."""

import argparse
import sys
from pathlib import Path

from hydra.errors import HydraException

from neural_ngram import tokenizer as tokenizers
from neural_ngram.artifacts import write_text
from neural_ngram.configuration import composed
from neural_ngram.errors import NeuralNgramError
from neural_ngram.ngram import export_arpa, load_kneser_ney
from neural_ngram.stages import ORACLE, TOKENIZER

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns the exit code."""
    parser = argparse.ArgumentParser(prog="neural-ngram", description=__doc__)
    commands = parser.add_subparsers(required=True)
    compose = commands.add_parser(
        "compose", help="write params.yaml from conf/ and Hydra overrides (model=bengio …)"
    )
    compose.add_argument("overrides", nargs="*", metavar="key=value")
    compose.set_defaults(run=lambda chosen: _compose(chosen.overrides))
    arpa = commands.add_parser("arpa", help="write the count model of the last run in ARPA format")
    arpa.add_argument("file", type=Path)
    arpa.set_defaults(run=lambda chosen: _arpa(chosen.file))
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except (NeuralNgramError, HydraException, OSError) as problem:
        print(f"neural-ngram: {problem}", file=sys.stderr)
        return 1
    return 0


def _compose(overrides: list[str]) -> None:
    write_text(Path("params.yaml"), composed(Path.cwd(), overrides))
    print("params.yaml composed; `dvc repro` runs what changed")


def _arpa(file: Path) -> None:
    model = load_kneser_ney(ORACLE / "kneser_ney.safetensors")
    export_arpa(model, file, tokens=_arpa_names(tokenizers.load(TOKENIZER)))
    print(f"{file}: a model of order {model.order}, for KenLM and others to read")


def _arpa_names(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """How ARPA writes each token: markers by its own names, white space by its code point."""
    names = [
        "".join(f"<U+{ord(c):04X}>" if c.isspace() else c for c in token)
        for token in tokenizer.tokens
    ]
    for marker, name in ((tokenizer.bos, "<s>"), (tokenizer.eos, "</s>")):
        if marker is not None:
            names[marker] = name
    return names
