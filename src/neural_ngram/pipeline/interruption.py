"""Ctrl-C and SIGTERM end a program with one line and exit code 130 or 143.

While a program is still importing, there is nothing to clean up, and imports are not
exception-safe, so the process exits at once. Later the signals raise SystemExit, so
that temporary files are deleted and runs are closed on the way out.
"""

import atexit
import os
import signal
import sys
from types import FrameType

__all__ = ["INTERRUPTION"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Interruption:
    """What the two signals do, and whether one came.

    code: the exit code that it asked for. cleans_up: there is something to clean up by now.
    finished: all is done.
    """

    code: int | None = None
    cleans_up = False
    finished = False

    def listen(self) -> None:
        """Handle the signals from now on, except those that the process was started to ignore."""
        atexit.register(self.leave)
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._end)

    def ignore(self) -> None:
        """Ignore the signals from now on, also while the interpreter shuts down."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def finish(self) -> None:
        """Let the process end with code 0 as soon as everything is cleaned up.

        Shutting down torch and MLflow as well would take a second.
        """
        self.ignore()
        self.finished = True

    def leave(self) -> None:
        """End a process that has finished; of its exit handlers the first, which runs last."""
        if self.finished:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _end(self, number: int, _: FrameType | None) -> None:
        """Ignore later signals, so that nothing interrupts the clean-up."""
        self.ignore()
        self.code = 128 + number
        program = sys.orig_argv[2] if sys.orig_argv[1:2] == ["-m"] else sys.argv[0]
        label = program.rpartition(".")[2].replace("_", "-")
        os.write(2, f"{label}: interrupted; run the same command to continue\n".encode())
        if not self.cleans_up:
            os._exit(self.code)
        raise SystemExit(self.code)


INTERRUPTION = _Interruption()
