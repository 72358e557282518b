"""The audit hook: a clear message at the moment Python opens, renames or links a closed file.

It sees `open`, `os.open`, pathlib and whatever builds on them, in this process. It does not see
files that compiled libraries or child processes open: Landlock does.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import walk_tb
from typing import Any

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.rules import DECLARED, Rules

__all__ = ["explanation", "watch"]

# safetensors calls a refused file missing; a child's failure names its command.
_SIGNS = ("ermission denied", "No such file", "returned non-zero exit status")
_ACCESS = os.O_WRONLY | os.O_RDWR
_WORD = re.compile(r"[^\s'\"\[\](),;]{1,4096}")


def watch(rules: Rules) -> None:
    """Refuse reads of closed files from now on; a hook cannot be removed.

    The hook raises BoundaryError.
    """
    sys.addaudithook(_hook(rules))


def _hook(rules: Rules) -> Callable[..., None]:
    def refuse(name: str, rule: str | None) -> None:
        if rule:
            raise BoundaryError(rules.refusal(name, rule))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            for name in _opened(*arguments):
                refuse(name, rules.rule_against(name))
        elif event in ("os.rename", "os.link"):
            source, _, folder, _ = arguments
            name = _placed(source, folder)
            refuse(name, rules.rule_against(name) or rules.rule_within(name))

    return hook


def _opened(path: object, mode: str | None, flags: int) -> Iterator[str]:
    """The names by which what is opened for reading is to be judged.

    Python does not say which folder `os.open` resolves a relative name against, so every folder
    that is open as a descriptor counts.
    """
    if not isinstance(path, (str, bytes, os.PathLike)) or flags & _ACCESS == os.O_WRONLY:
        return
    name = os.fsdecode(path)
    yield name
    if mode is None and not name.startswith("/"):
        yield from (f"{folder}/{name}" for folder in _open_folders())


def _open_folders() -> list[str]:
    """Every folder that this process has open; none where the system does not list them."""
    try:
        return [str(link) for link in Path("/proc/self/fd").iterdir() if link.is_dir()]
    except OSError:
        return []


def _placed(path: str | bytes, folder: int) -> str:
    """A name relative to an open folder; -1 for the working directory."""
    name = os.fsdecode(path)
    return name if folder < 0 or name.startswith("/") else f"/proc/self/fd/{folder}/{name}"


def explanation(problem: BaseException, rules: Rules) -> str | None:
    """What the boundary says of a failure, where compiled code or a child met Landlock.

    None when nothing in the failure, or in what caused it, indicates a refused read.
    """
    chain = list(_chain(problem))
    for link in chain:
        if isinstance(link, BoundaryError):
            return str(link)
    told = [str(link) for link in chain]
    if not any(sign in text for text in told for sign in _SIGNS):
        return None
    for name in (name for link in chain for name in (*_words(link), *_locals(link))):
        rule = rules.rule_against(name)
        if rule and Path(name).exists():
            return rules.refusal(name, rule)
    denied = any(_SIGNS[0] in text for text in told)
    if not denied or any(isinstance(link, OSError) and link.filename for link in chain):
        return None
    return (
        f"{problem}: possibly a closed file that the library does not name (rule: {DECLARED}); "
        f"compare what {rules.stage} reads with its deps in dvc.yaml"
    )


def _chain(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def _words(problem: BaseException) -> list[str]:
    named = [problem.filename] if isinstance(problem, OSError) else []
    return [name for name in named if isinstance(name, str)] + _WORD.findall(str(problem))


def _locals(problem: BaseException) -> Iterator[str]:
    """Paths in the variables of the frames that failed, the innermost first."""
    frames = [frame for frame, _ in walk_tb(problem.__traceback__)]
    for frame in reversed(frames):
        for value in list(frame.f_locals.values()):
            if isinstance(value, Path) or (isinstance(value, str) and _WORD.fullmatch(value)):
                yield str(value)
