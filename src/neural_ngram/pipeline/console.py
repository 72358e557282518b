"""What a stage or a command prints, and the arguments of its command line."""

import sys
from collections.abc import Iterable
from io import TextIOWrapper

from neural_ngram.errors import ConfigurationError


def escape() -> None:
    """Let output that is not UTF-8 show unencodable characters by their code points."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def require_text(arguments: Iterable[str]) -> None:
    """Raise ConfigurationError for an argument that is not in the encoding of the locale."""
    for word in arguments:
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise ConfigurationError(
                f"the argument {word!a} is not in the locale's encoding, "
                f"{sys.getfilesystemencoding()}; send it so, or set LC_ALL=C.UTF-8"
            )


def say(text: str) -> None:
    """Print one plain line of what a stage read, wrote or found."""
    print(f"  {text}", flush=True)
