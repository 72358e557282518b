"""Landlock: a process gives up, for itself and its children, the right to open files for reading.

The kernel knows only lists of what stays allowed, and a rule on a folder applies to all below it.
So the whole file system is allowed in the largest pieces without a closed path. Renaming and
linking across folders stays allowed where reading is: the kernel refuses it where a file would
gain rights.

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from neural_ngram.errors import BoundaryError

__all__ = ["pieces", "restrict", "version"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
_READ_FILE, _REFER = 1 << 2, 1 << 13
_REFER_SINCE = 2


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """The kernel's Landlock ABI; 0 when it has none or it is switched off."""
    if sys.platform != "linux":
        return 0
    found: int = _libc().syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return max(0, found)


def pieces(closed: Iterable[str], opened: Iterable[str]) -> Iterator[str]:
    """The largest files and folders that together hold all that may be read, from the root down.

    Symbolic links are left out: what they point to has a piece of its own, or is closed.
    """
    shut, free = frozenset(closed), frozenset(opened)
    above = {str(parent) for place in shut | free for parent in Path(place).parents}
    yield from _pieces("/", shut, free, above, readable=True)


def _pieces(
    path: str, shut: frozenset[str], free: frozenset[str], above: set[str], *, readable: bool
) -> Iterator[str]:
    readable = path in free or (readable and path not in shut)
    if path not in above or Path(path).is_file():  # `.git` is a file in a worktree
        if readable:
            yield path
        return
    for entry in _entries(Path(path), above | free):
        place = str(entry)
        if (readable or place in above or place in free) and not entry.is_symlink():
            yield from _pieces(place, shut, free, above, readable=readable)


def _entries(folder: Path, known: Iterable[str]) -> list[Path]:
    """The content of a folder; if it cannot be listed, what is known to be there."""
    try:
        return list(folder.iterdir())
    except OSError:
        return [path for path in map(Path, known) if path.parent == folder]


def restrict(paths: Iterable[str]) -> None:
    """From now on this thread, and what it starts, opens for reading only what is under `paths`.

    Raises BoundaryError when the kernel refuses.
    """
    libc = _libc()
    refer = _REFER if version() >= _REFER_SINCE else 0
    attributes = _Ruleset(_READ_FILE | refer)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    _require(ruleset >= 0, "landlock_create_ruleset")
    try:
        for path in paths:
            handle = _handle(path)
            if handle is not None:
                _allow(libc, ruleset, path, handle, refer)
        _require(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl(PR_SET_NO_NEW_PRIVS)")
        _require(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0, "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _handle(path: str) -> int | None:
    """A descriptor that names a path to the kernel.

    None for one that was deleted since it was listed, or that this user cannot reach anyway: there
    is nothing for a rule to allow.
    """
    try:
        return os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as problem:
        raise BoundaryError(
            f"{path} cannot be opened to this stage ({problem.strerror}); allow more open files "
            "or memory, and run the same command again"
        ) from problem


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, handle: int, refer: int) -> None:
    """One rule; takes the descriptor over."""
    try:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        rule = _PathBeneath(_READ_FILE | refer if folder else _READ_FILE, handle)
        done = libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
        _require(done == 0, f"landlock_add_rule for {path}")
    finally:
        os.close(handle)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _require(succeeded: bool, call: str) -> None:
    if not succeeded:
        raise BoundaryError(
            f"the kernel refuses {call}: {os.strerror(ctypes.get_errno())}; report it, and set "
            "boundary.mode=audit to continue with the weaker sandbox"
        )
