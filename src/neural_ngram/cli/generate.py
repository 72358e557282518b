"""Text streamed to the terminal as the model of the last run generates it."""

import time
from collections.abc import Sequence

from neural_ngram.cli.last_run import current_settings, last_run

__all__ = ["show_continuations"]


def show_continuations(prompt: str, overrides: Sequence[str], pause: float) -> None:
    """Continue a prompt `generation.samples` times, or once, greedily, at temperature 0.

    pause: seconds to wait after each token.
    """
    asked = current_settings(overrides).generation
    for stream in last_run().streams(prompt, asked):
        for piece in stream:
            print(piece, end="", flush=True)
            time.sleep(pause)
        print(flush=True)
