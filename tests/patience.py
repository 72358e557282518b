"""How long a test waits for another process before it calls that process stuck.

No measure of speed: nothing that works, on however slow a machine, comes near it.
"""

import time
from collections.abc import Callable

PATIENCE = 1800  # seconds
A_PAGE = 300_000  # milliseconds, in which a browser shows what a test waits for
PAUSE = 0.1


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Look again and again until the condition holds; AssertionError when it never does."""
    for _ in range(int(PATIENCE / PAUSE)):
        if condition():
            return
        time.sleep(PAUSE)
    raise AssertionError(f"{what} has not come about")
