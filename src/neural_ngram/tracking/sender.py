"""The process that sends a run to MLflow while it is written, as its writer sees it.

MLflow takes seconds to import and milliseconds to log: both happen there, so that training neither
waits for it nor shares its interpreter with it. It outlives a writer that is killed, for as long as
it takes to send what is left.
"""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["Sender"]

PATIENCE = 15.0  # seconds for a store to open


class Sender:
    """Sends an entry of the spool from now on."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "neural_ngram.tracking.sending", str(folder)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.unread, self.state, self.since = b"", "starting", time.monotonic()

    def failure(self) -> str | None:
        """Why the store does not accept the run at present; None while nothing is wrong."""
        self._listen(0)
        return self._failed()

    def finish(self) -> str | None:
        """Wait until everything is sent; returns the reason if it was not.

        A store that does not open is waited for no longer than PATIENCE.
        """
        assert self.process.stdin is not None
        self.process.stdin.close()
        while self._listen(1):
            waited = time.monotonic() - self.since
            if self.state == "opening" and waited > PATIENCE:
                return f"it did not open within {PATIENCE:.0f} seconds"
        assert self.process.stdout is not None
        self.process.stdout.close()
        if self.process.wait() and not self._failed():
            return f"its sender ended with code {self.process.returncode}"
        return self._failed()

    def _failed(self) -> str | None:
        return self.state.removeprefix("failed ") if self.state.startswith("failed ") else None

    def _listen(self, seconds: float) -> bool:
        """Read what the process says; false once it has ended."""
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        ready, _, _ = select.select([pipe], [], [], seconds)
        if not ready:
            return True
        said = os.read(pipe, 1 << 16)
        *lines, self.unread = (self.unread + said).split(b"\n")
        for line in lines:
            if line.decode() != self.state:
                self.state, self.since = line.decode(), time.monotonic()
        return bool(said)
