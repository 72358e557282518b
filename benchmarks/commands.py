"""What a command takes from start to end, beside `python -c "import torch"` in the same turn.

Processor time, that of child processes included, so that other work on the machine counts little.
The commands look at the last run, so that there must be one. A ratio of 0.9 means that a command
takes 1 / 0.9 times as long as the import alone.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from measure import Row, compare

COMMAND = "import sys; from neural_ngram.cli.main import main; sys.exit(main())"
TORCH = ("-c", "import torch")
COMMANDS = (
    ("--help",),
    ("parameters", "--vocabulary", "100"),
    ("parameters",),
    ("next", "At night"),
    ("generate", "At night"),
    ("report",),
)


def processor_seconds(*arguments: str) -> float:
    """Seconds of processor time that Python takes with these arguments."""
    before = os.times()
    environment = {**os.environ, "PYTHONPATH": "src"}
    subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True)
    after = os.times()
    return sum(
        getattr(after, kind) - getattr(before, kind)
        for kind in ("children_user", "children_system")
    )


def compare_command(words: tuple[str, ...]) -> Row:
    """One command and the import, in turns."""
    return compare(
        (f"neural-ngram {' '.join(words)}, CPU", "import torch"),
        partial(processor_seconds, "-c", COMMAND, *words),
        partial(processor_seconds, *TORCH),
        5,
        lambda: "exit code 0",
    )


def rows() -> Iterator[Row]:
    """One per command."""
    yield from map(compare_command, COMMANDS)


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
