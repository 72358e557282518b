"""Half-written files after SIGKILL of DVC itself, which writes two of its files in place."""

import json
from pathlib import Path

from dvc.dvcfile import LOCK_FILE, Lockfile
from dvc.exceptions import DvcException
from dvc.lock import LockError, make_lock
from dvc.repo import Repo
from dvc.rwlock import RWLOCK_FILE, RWLOCK_LOCK

from neural_ngram.errors import ArtifactError

__all__ = ["repair"]


def repair(root: Path) -> list[Path]:
    """Delete those of DVC's own files that it could not read again; returns what was deleted.

    Nothing is lost with them: `.dvc/tmp/rwlock` says which process uses which output, and what
    dvc.lock records of stages that ran is also in DVC's run cache.

    Raises ArtifactError when there is no DVC project, or another DVC holds its lock.
    """
    try:
        with Repo(str(root)) as repository, repository.lock:
            folder = Path(repository.tmp_dir)
            with make_lock(
                str(folder / RWLOCK_LOCK),
                tmp_dir=str(folder),
                hardlink_lock=repository.config["core"].get("hardlink_lock", False),
            ):
                claims, record = folder / RWLOCK_FILE, Path(repository.root_dir) / LOCK_FILE
                whole = {claims: _is_json(claims), record: _is_read(repository, record)}
                broken = [path for path, is_whole in whole.items() if not is_whole]
                for path in broken:
                    path.unlink()
    except LockError as problem:
        raise ArtifactError(
            f"another DVC process is running in {root}; wait until it ends, or stop it"
        ) from problem
    except DvcException as problem:
        raise ArtifactError(f"DVC cannot work in {root}: {problem}") from problem
    return broken


def _is_json(path: Path) -> bool:
    """Whether a file is absent or whole."""
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return True
    except ValueError:
        return False
    return True


def _is_read(repository: Repo, path: Path) -> bool:
    try:
        Lockfile(repository, str(path)).load()
    except DvcException:
        return False
    return True
