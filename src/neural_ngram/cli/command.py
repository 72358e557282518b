"""Where `neural-ngram` enters: a library that was installed without the pipeline says so."""

import sys
from importlib import import_module

__all__ = ["main"]


def main() -> int:
    """Run the command; returns its exit code, 1 when what it needs is not installed."""
    try:
        code: int = import_module("neural_ngram.cli.main").main()
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("neural_ngram"):
            raise
        print(
            f"neural-ngram: the command needs {missing.name}, which is not installed; "
            "pip install 'neural-ngram[pipeline]' (the library alone does without)",
            file=sys.stderr,
        )
        return 1
    return code
