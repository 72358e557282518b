"""Progress lines for work that prints nothing itself."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from neural_ngram.pipeline.console import say

__all__ = ["heartbeat"]


@contextmanager
def heartbeat(work: str, every: float = 30.0) -> Iterator[None]:
    """Print a line at regular intervals, from a thread, until the block ends."""
    done, start = threading.Event(), time.monotonic()

    def beat() -> None:
        while not done.wait(every):
            say(f"{work}: {time.monotonic() - start:,.0f} s so far")

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
