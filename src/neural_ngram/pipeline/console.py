"""What a stage or a command prints, and what it is given on its command line."""

import sys
from collections.abc import Iterable
from io import TextIOWrapper

from neural_ngram.errors import ConfigurationError


def escape() -> None:
    """Let output that is not UTF-8 show a character that it lacks by its code point."""
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
    """One plain line of what a stage read, made or found."""
    print(f"  {text}", flush=True)
