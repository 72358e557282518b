"""Show the most probable next tokens after a prompt, with the model of the last run."""

import argparse

from neural_ngram.cli.last_run import last_run
from neural_ngram.cli.words import natural, table

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("prompt", help="the text before the next token")
    parser.add_argument("--count", type=natural, default=10, help="number of tokens (default 10)")
    parser.epilog = 'examples:\n  neural-ngram next "At night"\n  neural-ngram next "At" --count 3'


def run(chosen: argparse.Namespace) -> None:
    """What the model reads of the prompt, and a table."""
    trained = last_run()
    rows: list[tuple[object, ...]] = [
        (each.label, each.token, f"{each.probability:.4f}")
        for each in trained.next_tokens(chosen.prompt, chosen.count)
    ]
    print(f"after {' '.join(map(trained.tokenizer.label, trained.context(chosen.prompt)))}")
    print(table(("token", "ID", "probability"), rows))
