"""How two ways of doing the same are timed: in turns, so that both meet the same machine."""

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Row", "clock", "compare", "compare_results", "cpu_name"]


@dataclass(frozen=True)
class Row:
    """One comparison: milliseconds of each side, the median ratio of turns, what both reached."""

    task: str
    peer: str
    ours_ms: float
    peer_ms: float
    ratio: float
    reached: str

    def __str__(self) -> str:
        return (
            f"{self.task:44} {self.ours_ms:11.3f} ms {self.peer_ms:11.3f} ms "
            f"{self.ratio:8.2f}x   {self.peer}; {self.reached}"
        )


def clock(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(
    names: tuple[str, str],
    ours: Callable[[], float],
    peer: Callable[[], float],
    turns: int,
    reached: Callable[[], str],
) -> Row:
    """A row from functions that each do their work once and return its seconds.

    names: of the task and of the peer.
    """
    pairs = [(ours(), peer()) for _ in range(turns)]
    return Row(
        *names,
        1e3 * statistics.median(mine for mine, _ in pairs),
        1e3 * statistics.median(other for _, other in pairs),
        statistics.median(other / mine for mine, other in pairs),
        reached(),
    )


def compare_results(
    names: tuple[str, str],
    ours: Callable[[], float],
    peer: Callable[[], float],
    turns: int,
    report: str,
) -> Row:
    """A row from two ways to the same number; `report` formats both."""
    results = ours(), peer()
    return compare(
        names, lambda: clock(ours), lambda: clock(peer), turns, lambda: report.format(*results)
    )


def cpu_name() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
