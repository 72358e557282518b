"""Open a page on this machine, at http://127.0.0.1, to play with trained models.

Two models side by side: that of the last run, and those of other runs in MLflow.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from socket import create_server, socket
from tempfile import TemporaryDirectory

from neural_ngram.artifacts import sha256_of_file
from neural_ngram.cli.last_run import current_settings, last_run
from neural_ngram.errors import ArtifactError, ConfigurationError, TrackingError
from neural_ngram.generation.trained import Trained, load
from neural_ngram.pipeline.project import MODEL
from neural_ngram.tracking.past import PastRun, past_runs

__all__ = ["add", "listening", "run"]

PORTS, TRIED = 2**16, 100
LAST_RUN = "the model in artifacts/"


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument(
        "--port", type=int, default=8080, help="port of 127.0.0.1, or the next free one (8080)"
    )
    parser.add_argument("--no-browser", action="store_true", help="serve without opening a browser")
    parser.epilog = "examples:\n  neural-ngram play\n  neural-ngram play --port 9000 --no-browser"


def run(chosen: argparse.Namespace) -> None:
    """Serve the page until interrupted, at `--port` of 127.0.0.1 or the next that is free.

    Raises ArtifactError when there is no model, or NiceGUI is not installed, and ConfigurationError
    when the port does not exist or none is free.
    """
    if find_spec("nicegui") is None:
        raise ArtifactError(
            "the playground needs NiceGUI, which is not installed; run "
            "`pip install -c constraints.txt -e '.[play]'`"
        )
    from neural_ngram.cli.playground.page import serve  # noqa: PLC0415 - an extra

    with listening(chosen.port) as door:
        serve(_shelf(), current_settings().generation, door, browser=not chosen.no_browser)


def listening(port: int) -> socket:
    """A socket that listens at `port` of 127.0.0.1, or at the next free port; 0: any.

    Raises ConfigurationError when the port does not exist, or none is free.
    """
    if not 0 <= port < PORTS:
        raise ConfigurationError(f"--port is {port}, but must be from 0 to {PORTS - 1}")
    for candidate in range(port, min(port + TRIED, PORTS)):
        with suppress(OSError):
            return create_server(("127.0.0.1", candidate))
    raise ConfigurationError(
        f"no port from {port} to {candidate} of 127.0.0.1 can be opened; give another --port"
    )


def _shelf() -> dict[str, Callable[[], Trained]]:
    """How to load each model, by the name that the user chooses; the last run's comes first."""
    last = last_run()
    shelf: dict[str, Callable[[], Trained]] = {LAST_RUN: lambda: last}
    known = sha256_of_file(MODEL)
    try:
        others = [past for past in past_runs() if past.model_sha256 != known]
    except TrackingError as problem:
        print(f"warning: {problem}; only {LAST_RUN} is available", file=sys.stderr)
        others = []
    for past in others:
        shelf[f"{past.name} · {past.started:%d %b %H:%M} · {past.run_id[:6]}"] = cache(
            partial(_loaded, past)
        )
    return shelf


def _loaded(past: PastRun) -> Trained:
    with TemporaryDirectory() as copy:
        file = past.download("model", Path(copy)) / "model.safetensors"
        folder = past.download("tokenizer", Path(copy))
        try:
            return load(file, folder, past.model_sha256)
        except ArtifactError as problem:
            raise ArtifactError(f"run {past.run_id}: {problem}") from problem
