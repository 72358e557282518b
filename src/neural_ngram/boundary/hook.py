"""The audit hook: a clear message at the moment Python opens a closed file.

It sees `open`, `os.open`, pathlib and whatever builds on them, in this process. It does not see
files that compiled libraries or child processes open: Landlock does.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import walk_tb

from neural_ngram.boundary.territory import DECLARED, Territory
from neural_ngram.errors import BoundaryError

__all__ = ["explanation", "watch"]

# safetensors calls a refused file missing; a child's failure tells its command.
_SIGNS = ("ermission denied", "No such file", "returned non-zero exit status")
_WORD = re.compile(r"[^\s'\"\[\](),;]{1,4096}")


def watch(territory: Territory) -> None:
    """Refuse reads of closed files from now on; there is no way to take a hook away.

    The hook raises BoundaryError.
    """
    sys.addaudithook(_hook(territory, _libraries(territory)))


def _libraries(territory: Territory) -> tuple[str, ...]:
    """Folders of installed code, which need no look: most of what a stage opens."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) + os.sep for name in names}
    marked = (*territory.closed, *territory.opened)
    return tuple(
        folder for folder in folders if not any(place.startswith(folder) for place in marked)
    )


def _hook(territory: Territory, libraries: tuple[str, ...]) -> Callable[..., None]:
    access = os.O_WRONLY | os.O_RDWR

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open":
            return
        path, _, flags = arguments
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        if isinstance(flags, int) and flags & access == os.O_WRONLY:
            return
        name = os.fsdecode(path)
        if name.startswith(libraries):
            return
        rule = territory.rule_against(name)
        if rule:
            raise BoundaryError(territory.refusal(name, rule))

    return hook


def explanation(problem: BaseException, territory: Territory) -> str | None:
    """What the boundary says of a failure, where compiled code or a child met Landlock.

    None when nothing in the failure, or in what caused it, tells of a refused read.
    """
    chain = list(_chain(problem))
    for link in chain:
        if isinstance(link, BoundaryError):
            return str(link)
    told = [str(link) for link in chain]
    if not any(sign in text for text in told for sign in _SIGNS):
        return None
    for name in (name for link in chain for name in (*_words(link), *_locals(link))):
        rule = territory.rule_against(name)
        if rule and Path(name).exists():
            return territory.refusal(name, rule)
    denied = any(_SIGNS[0] in text for text in told)
    if not denied or any(isinstance(link, OSError) and link.filename for link in chain):
        return None
    return (
        f"{problem}: perhaps a closed file, which the library does not name (rule: {DECLARED}); "
        f"compare what {territory.stage} reads with its deps in dvc.yaml"
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
