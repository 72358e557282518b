"""The boundary between train, validation and test, as a stage meets it.

    declaration   what dvc.yaml says that a stage reads and writes
    stores        where DVC and git keep copies
    rules         which files are closed to it, and by which rule
    landlock      the kernel refuses to open them for this process and its children
    hook          Python refuses with a clear message; the only protection without Landlock
    graph         what may flow where, proved from dvc.yaml and dvc.lock

`enter` must be called before numpy, pandas, torch or MLflow is imported: Landlock applies to the
calling thread and to what it starts, not to threads that already exist.
"""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary import landlock
from neural_ngram.pipeline.boundary.declaration import declarations, lookup, named
from neural_ngram.pipeline.boundary.graph import prove
from neural_ngram.pipeline.boundary.hook import explanation, watch
from neural_ngram.pipeline.boundary.rules import Rules, rules
from neural_ngram.pipeline.project import STORE, dvc_root

KINDS = ("off", "audit", "landlock")  # from the weakest to the strongest


@dataclass(frozen=True)
class Sandbox:
    """The sandbox around a stage: `kind` is one of KINDS."""

    kind: str
    rules: Rules | None = None

    def close(self, path: Path) -> bool:
        """Whether a path is closed to the stage."""
        return self.rules is not None and self.rules.rule_against(str(path)) is not None

    def missing(self) -> list[str]:
        """Declared inputs that do not exist: the kernel accepts no rule for them, so a file created
        there later could not be read.
        """
        needed = self.rules.needed if self.rules and self.kind == "landlock" else ()
        return [os.path.relpath(path) for path in needed if not Path(path).exists()]

    def explanation(self, problem: BaseException) -> str | None:
        """What to report of a failure that the sandbox caused; None for any other."""
        return explanation(problem, self.rules) if self.rules else None

    def __str__(self) -> str:
        return {
            "landlock": "closed files are refused by the kernel, to child processes too",
            "audit": "only Python's own reads of closed files are refused: compiled libraries and "
            "child processes are not restricted, since Landlock is missing or boundary.mode=audit",
            "off": "nothing is refused, since boundary.mode=off",
        }[self.kind]


def enter(stage: str, parameters: Mapping[str, Any]) -> Sandbox:
    """Close what `stage` does not declare, for the rest of this process.

    Raises BoundaryError when dvc.yaml does not declare the stage, when its stages would carry test
    to what is learned, when an input is closed to it, when threads run already, or when
    MLflow's database could not be used inside the sandbox.
    """
    mode = lookup(parameters, "boundary.mode")
    if mode == "off":
        return Sandbox("off")
    here, root = Path.cwd(), dvc_root()
    stages = declarations(here, parameters)
    prove(stages, root=here)
    land = rules(named(stages, stage, here), (here, root), parameters)
    _require_python(land)
    kind = "landlock" if mode != "audit" and landlock.version() else "audit"
    for folder in (*map(Path, land.made), root / STORE):
        _make(folder)
    if kind == "landlock":
        _require_one_thread(stage)
        _make_store(land, root)
        _move_temporary_files(land)
        landlock.restrict(landlock.pieces(land.closed, land.opened))
    watch(land)
    return Sandbox(kind, land)


def _make(folder: Path) -> None:
    """Make a folder; remove it at exit if nothing was written."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if missing:
        atexit.register(_unmake, missing)


def _unmake(folders: list[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _require_python(land: Rules) -> None:
    for path in (sys.prefix, sys.base_prefix):
        rule = land.rule_against(path)
        if rule:
            raise BoundaryError(
                f"this Python lies in {path}, which is closed to {land.stage} (rule: {rule}); "
                "install it in a folder of its own, or move what is closed there"
            )


def _require_one_thread(stage: str) -> None:
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1:
        raise BoundaryError(
            f"{threads} threads are already running when {stage} closes its files, and the sandbox "
            f"would not apply to them; import nothing heavy above `enter` in "
            f"stages/{stage.replace('-', '_')}.py, or start without a debugger"
        )


def _above(land: Rules) -> set[str]:
    return {str(parent) for place in (*land.closed, *land.opened) for parent in Path(place).parents}


def _make_store(land: Rules, root: Path) -> None:
    """Make MLflow's folder; a new file beside a closed folder could not be read back.

    SQLite makes a journal beside its database and must read it.
    """
    address = os.environ.get("MLFLOW_TRACKING_URI", "")
    scheme, _, place = address.rpartition("://")
    if scheme in ("", "file", "sqlite"):
        path = Path(place.removeprefix("/") if scheme == "sqlite" else place or root / STORE)
        folder = path.resolve().parent if scheme == "sqlite" else path.resolve()
        if str(folder) in _above(land):
            raise BoundaryError(
                f"MLFLOW_TRACKING_URI={address} keeps its files in {folder}, beside closed "
                "folders, where new files cannot be read back; move it into a folder of its own, "
                "or set boundary.mode=audit"
            )
        _make(folder)


def _move_temporary_files(land: Rules) -> None:
    """A folder of its own for temporary files when the project itself lies in the usual one."""
    if os.path.realpath(tempfile.gettempdir()) in _above(land):
        folder = tempfile.mkdtemp(prefix="neural-ngram-")
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
