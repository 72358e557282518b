"""How many threads compute a model."""

import os
from pathlib import Path

from neural_ngram.model.architecture import Architecture, parameter_count
from neural_ngram.settings import TrainingSettings

__all__ = ["thread_count"]

WORTH_SHARING = 10**8


def thread_count(architecture: Architecture, settings: TrainingSettings) -> int:
    """`training.threads`; where that is null, every core for large steps and one for small ones.

    A step is large from 1e8 multiplications in the forward pass, over all rows of the batch. Below
    that, two threads were up to 1.4 times as fast on an idle 2-core Xeon, but at most half as fast
    when another process used the core. Where no order of sums is fixed for several threads (double
    precision, on a processor that is not Intel's), `training.determinism` takes one thread whatever
    `training.threads` says.
    """
    if settings.determinism and settings.dtype == "float64" and not _intel():
        return 1
    if settings.threads is not None:
        return settings.threads
    looked_up = architecture.vocabulary_size * architecture.settings.embedding_width
    multiplied = parameter_count(architecture) - looked_up * (not architecture.settings.tied_output)
    return _cores() if multiplied * settings.batch_size >= WORTH_SHARING else 1


def _intel() -> bool:
    """Whether MKL keeps its promise of `MKL_CBWR=AVX2,STRICT` in double precision here."""
    processor = Path("/proc/cpuinfo")
    return processor.exists() and "GenuineIntel" in processor.read_text()


def _cores() -> int:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
