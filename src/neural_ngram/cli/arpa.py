"""Write the count model of the last run in ARPA format, which KenLM and others read.

Spaces separate tokens in an ARPA file, so white space within a token is written by its code point:
<U+0020> is a space, <U+000A> a line feed, <U+0009> a tab. Tokens of a byte-level BPE are written as
in tokenizer.json, each byte as one visible character: Ġ is a space, Ċ a line feed, ĉ a tab. Other
control characters of the corpus stay as they are. <s>, </s> and <unk> are the special tokens.
"""

import argparse
from pathlib import Path

from neural_ngram.export.arpa import export_arpa
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline.project import ORACLE, TOKENIZER
from neural_ngram.tokens import tokenizer as tokenizers

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("file", type=Path, help="the file to write")
    parser.epilog = "examples:\n  neural-ngram arpa counts.arpa"


def run(chosen: argparse.Namespace) -> None:
    """Write the file and say how to read it."""
    model = load_kneser_ney(ORACLE / "kneser_ney.safetensors")
    export_arpa(model, chosen.file, tokens=_names(tokenizers.load(TOKENIZER)))
    print(
        f"{chosen.file}: a model of order {model.order}, for KenLM and others to read; "
        "`neural-ngram arpa --help` explains how spaces and control characters are written"
    )


def _names(tokenizer: tokenizers.Tokenizer) -> list[str]:
    """How ARPA writes each token: special tokens by its own names, white space by code point."""
    names = list(tokenizer.names)
    for special, name in ((tokenizer.bos, "<s>"), (tokenizer.eos, "</s>")):
        if special is not None:
            names[special] = name
    return names
