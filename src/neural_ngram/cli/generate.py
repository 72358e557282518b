"""Continue a prompt with the model of the last run; text appears as it is generated.

Settings are Hydra overrides: generation.temperature=0.5 (0: greedy), generation.top_k=40,
generation.top_p=0.9, generation.samples=1, generation.max_new_tokens=200, generation.seed=1.
"""

import argparse
import time

from neural_ngram.cli.last_run import current_settings, last_run
from neural_ngram.cli.words import seconds

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("prompt", help="the text to continue")
    parser.add_argument("overrides", nargs="*", metavar="name=value", help="settings to override")
    parser.add_argument(
        "--typewriter", type=seconds, default=0.0, metavar="SECONDS", help="wait after each token"
    )
    parser.epilog = (
        'examples:\n  neural-ngram generate "At night"\n'
        '  neural-ngram generate "At night" generation.temperature=0 --typewriter 0.05'
    )


def run(chosen: argparse.Namespace) -> None:
    """Continue it `generation.samples` times, or once, greedily, at temperature 0."""
    asked = current_settings(chosen.overrides).generation
    for stream in last_run().streams(chosen.prompt, asked):
        for piece in stream:
            print(piece, end="", flush=True)
            time.sleep(chosen.typewriter)
        print(flush=True)
