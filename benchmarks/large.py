"""What the stages that read text take of time and memory: `python benchmarks/large.py [MB]`.

Writes a corpus of so many megabytes (1,000 by default), a document of about a kilobyte a line, into
a temporary project, and runs its first three stages there, each in a process of its own. The words
are made up, a million types whose frequencies fall as those of words do. A gigabyte takes about
half an hour and 10 GB of disk.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import cpu_name

ROOT = Path(__file__).parents[1]
NEEDED = ("conf", "src", "hydra_plugins", "dvc.yaml", "params.yaml", ".dvc/config")
STAGES = ("split_corpus", "learn_bpe", "build_windows")
TYPES, WORDS = 1_000_000, 160


def write_corpus(path: Path, megabytes: int) -> None:
    """Lines of so many words each, until the file is large enough."""
    draws = np.random.default_rng(2)
    letters, lengths = draws.integers(97, 123, (TYPES, 9)), draws.integers(2, 10, TYPES)
    types = np.array(
        ["".join(map(chr, row[:n])) for row, n in zip(letters.tolist(), lengths, strict=True)]
    )
    shares = np.cumsum(1 / np.arange(1, TYPES + 1))
    with path.open("w") as file:
        while file.tell() < megabytes * 10**6:
            drawn = np.searchsorted(shares, draws.random((1000, WORDS)) * shares[-1])
            file.writelines(" ".join(row) + "\n" for row in types[drawn].tolist())


def run(stage: str, folder: Path) -> tuple[float, float]:
    """Seconds and the peak of resident memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", f"neural_ngram.stages.{stage}", "corpus.path=corpus.txt"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{stage} failed")
    return time.perf_counter() - start, used.ru_maxrss / 1e3


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in NEEDED:
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        write_corpus(folder / "corpus.txt", megabytes)
        print(f"{cpu_name()}, {os.cpu_count()} cores; a text of {megabytes:,} MB", flush=True)
        for stage in STAGES:
            seconds, peak = run(stage, folder)
            print(f"{stage:14} {seconds:8.0f} s {peak:8,.0f} MB of memory", flush=True)


if __name__ == "__main__":
    main()
