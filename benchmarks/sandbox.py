"""What the sandbox costs: the start of a stage in it and without it, and a file opened in it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from measure import Row, clock, compare

START = """
import sys
from pathlib import Path
import neural_ngram.pipeline.configuration
from neural_ngram.pipeline.boundary import declaration, sandbox
parameters = declaration.parameters_of(Path.cwd(), [])
entered = sandbox.enter("train", {**parameters, "boundary": {"mode": sys.argv[1]}})
"""
OPEN = """
from time import perf_counter
start = perf_counter()
for _ in range(20_000):
    open("params.yaml").close()
print(perf_counter() - start)
"""


def program(code: str, mode: str) -> str:
    """What a child process prints that enters the sandbox in this mode."""
    command = [sys.executable, "-c", code, mode]
    environment = {**os.environ, "PYTHONPATH": "src"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def compare_starts() -> Row:
    """From the start of Python to where a stage imports what it computes with."""
    kind = program(START + "print(entered.kind)", "enforced").strip()
    return compare(
        ("start of a stage, in the sandbox", "boundary.mode=off"),
        lambda: clock(partial(program, START, "enforced")),
        lambda: clock(partial(program, START, "off")),
        15,
        lambda: f"{kind} / nothing is refused",
    )


def compare_opens() -> Row:
    """A file of the project, which the hook looks up among what is closed."""
    return compare(
        ("a file opened, in the sandbox", "boundary.mode=off"),
        lambda: float(program(START + OPEN, "enforced")) / 20_000,
        lambda: float(program(START + OPEN, "off")) / 20_000,
        9,
        lambda: "the same file",
    )


def rows() -> Iterator[Row]:
    """Both."""
    yield compare_starts()
    yield compare_opens()


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
