"""Checkpoints: where an interrupted training resumes.

A folder a training holds the two newest as `step-<n>.safetensors`. Its name is the hash of the
training's identity: the settings, the data and the code that make it what it is. Each file repeats
the identity, so that one of another training is refused with the difference named, and the SHA-256
of all that it holds, so that a damaged one is noticed and the one before it is taken.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from neural_ngram.artifacts import read_json, read_tensors, write_json, write_tensors
from neural_ngram.errors import ArtifactError

__all__ = ["Checkpoints", "State", "difference"]

KEPT = 2
PATTERN = "step-*.safetensors"

Identity = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class State:
    """A training after `step` updates.

    arrays: weights, optimizer state and record, by name. position: of the batches. dropout: the
    state of its random numbers.
    """

    step: int
    arrays: dict[str, NDArray[Any]]
    position: tuple[int, int]
    dropout: int


class Checkpoints:
    """The checkpoints of one training.

    identity: groups of named values, JSON throughout; the group `settings` is named by dotted names
    alone. say: called with one line about what happened to a checkpoint.
    """

    def __init__(self, root: Path, identity: Identity, say: Callable[[str], None]) -> None:
        text = json.dumps(identity, sort_keys=True)
        self.folder = root / hashlib.sha256(text.encode()).hexdigest()[:32]
        self.identity: Identity = json.loads(text)
        self.say, self.held = say, False

    @property
    def key(self) -> str | None:
        """The training's key; None while another process is running this training."""
        return self.folder.name if self.held else None

    @contextmanager
    def lock(self) -> Iterator["Checkpoints"]:
        """Lock out other processes running this training, or disable checkpoints."""
        lock = FileLock(self.folder / "lock")
        try:
            _take(lock)
        except Timeout:
            self.say("another process is running this training; checkpoints are disabled here")
            yield self
            return
        self.held = True
        try:
            yield self
        finally:
            self.held = False
            if not self._paths():
                shutil.rmtree(self.folder, ignore_errors=True)
            lock.release()

    def latest(self) -> State | None:
        """The newest checkpoint that is whole; damaged ones are named and deleted.

        Raises ArtifactError for one of another training.
        """
        if not self.held:
            return None
        for path in reversed(self._paths()):
            try:
                state = self._read(path)
            except _DamagedError as problem:
                self.say(f"{path} is damaged and deleted ({problem}); trying the one before it")
                path.unlink()
                continue
            self.say(f"resuming after step {state.step:,} from {path}")
            return state
        self._tell_of_others()
        return None

    def write(self, state: State) -> None:
        """Add a checkpoint; the oldest go."""
        if not self.held:
            return
        if not (self.folder / "identity.json").exists():
            write_json(self.folder / "identity.json", self.identity)
        description = {
            "identity": self.identity,
            "step": state.step,
            "position": state.position,
            "dropout": state.dropout,
        }
        description["sha256"] = _sha256(description, state.arrays)
        path = self.folder / f"step-{state.step:012}.safetensors"
        # Waiting for the disk would cost five times the rest; after a power failure the hash
        # reveals a damaged file.
        write_tensors(path, state.arrays, description, durable=False)
        for path in self._paths()[:-KEPT]:
            path.unlink()

    def abandoned(self) -> set[str]:
        """The keys of other trainings that were interrupted and that no process is running."""
        folders = (path for path in self.folder.parent.iterdir() if path != self.folder)
        return {path.name for path in folders if _is_idle(path)}

    def newest(self) -> Path | None:
        """The newest file, if there is one."""
        return next(reversed(self._paths()), None) if self.held else None

    def remove(self) -> None:
        """Delete them, once the training's outputs are written."""
        for path in self._paths() if self.held else ():
            path.unlink()

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(PATTERN))

    def _read(self, path: Path) -> State:
        try:
            arrays, description = read_tensors(path)
            if description.pop("sha256") != _sha256(description, arrays):
                raise _DamagedError("it does not have the SHA-256 that it names")
            differs = difference(description["identity"], self.identity)
            random, taken = description["position"]
            state = State(description["step"], arrays, (random, taken), description["dropout"])
        except (ArtifactError, LookupError, TypeError, ValueError, AttributeError) as problem:
            raise _DamagedError(f"{type(problem).__name__}: {problem}") from problem
        if differs:
            raise ArtifactError(f"{path} is the checkpoint of another training: {differs}; move it")
        return state

    def _tell_of_others(self) -> None:
        """Report why a checkpoint that the user may expect to be used is not."""
        files = self.folder.parent.glob(f"*/{PATTERN}")
        others = {path.parent for path in files if _is_idle(path.parent)} - {self.folder}
        described = [other / "identity.json" for other in others]
        newest = max((p for p in described if p.exists()), key=_age, default=None)
        if newest is not None:
            try:
                told = difference(read_json(newest), self.identity)
            except ArtifactError as problem:
                told = str(problem)
            self.say(f"no checkpoint of this training; {newest.parent} is of another: {told}")


class _DamagedError(Exception):
    pass


def difference(found: Identity, expected: Identity) -> str:
    """The first difference between two identities, and how many more there are; or ""."""
    there, here = _flat(found), _flat(expected)
    names = [name for name in there | here if there.get(name) != here.get(name)]
    if not names:
        return ""
    first = f"{names[0]} is {there.get(names[0])} there and {here.get(names[0])} here"
    return first + (f", and {len(names) - 1} more differ" if len(names) > 1 else "")


def _flat(identity: Identity) -> dict[str, Any]:
    return {
        name if group == "settings" else f"{group} {name}": value
        for group, values in identity.items()
        for name, value in values.items()
    }


def _sha256(description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    total = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}\n".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def _take(lock: FileLock) -> None:
    """Take one's own lock, which others hold for a moment to check whether it is taken.

    Raises Timeout while another process is running this training.
    """
    try:
        lock.acquire(timeout=1)
    except FileNotFoundError:  # the other training ended just now, and its folder with it
        lock.acquire(timeout=1)


def _is_idle(folder: Path) -> bool:
    if not (folder / "lock").exists():  # removed just now, or about to be taken
        return False
    try:
        with FileLock(folder / "lock").acquire(timeout=0):
            return True
    except (Timeout, OSError):
        return False


def _age(path: Path) -> float:
    return path.stat().st_mtime
