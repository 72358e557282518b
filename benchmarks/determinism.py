"""The cost of training.determinism: steps with a fixed order of summation, and without, in turns.

    PYTHONPATH=src python benchmarks/determinism.py

The choice is made as the tensor library loads, so each side is a process of its own. Takes about a
minute.
"""

import os
import statistics
import subprocess
import sys

import torch
import training
from measure import cpu_name

from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.model.threads import thread_count
from neural_ngram.pipeline.frame import FIXED_SUMS
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import TrainingSettings

TURNS = 15


def main() -> None:
    print(cpu_name())
    for name, regime in training.REGIMES.items():
        sides = [start(name, fixed) for fixed in ("fixed", "free")]
        pairs = [[turn(side) for side in sides] for _ in range(TURNS)]
        for side in sides:
            side.communicate()
        ratio = statistics.median(fixed / free for fixed, free in pairs)
        print(f"{regime.meaning:44} {ratio:.2f} times the time of free sums", flush=True)


def start(name: str, sums: str) -> subprocess.Popen[str]:
    environment = os.environ | (FIXED_SUMS if sums == "fixed" else {})
    command, pipe = [sys.executable, __file__, name], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def turn(side: subprocess.Popen[str]) -> float:
    """Seconds of one step, when this side is signalled to start."""
    side.stdin.write("go\n")
    side.stdin.flush()
    return float(side.stdout.readline())


def answer(name: str) -> None:
    """Take some steps for each line that comes in."""
    regime = training.REGIMES[name]
    windows = training.build(training.documents(regime), regime)
    architecture = Architecture(
        vocabulary_size=regime.vocabulary, context_length=regime.context, settings=regime.model
    )
    torch.set_num_threads(thread_count(architecture, TrainingSettings(batch_size=regime.batch)))
    model = initialise(architecture, SplitMix64(1), regime.dtype)
    steps = training.ours(model, windows, regime)
    with torch.inference_mode():
        training.seconds(steps, regime.steps)
        for _ in sys.stdin:
            print(training.seconds(steps, regime.steps), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        answer(sys.argv[1])
    else:
        main()
