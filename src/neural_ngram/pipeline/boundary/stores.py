"""Where DVC and git keep copies of what lies in a folder.

Neither program is called, since a stage would wait for it: the same files are read, with the
parsers that DVC itself uses. An extra path does no harm, so the configuration of every level
counts, not only the effective one, and so does every repository around the folder.

Sources: https://dvc.org/doc/user-guide/project-structure/configuration and git's pages
gitrepository-layout(5) and gitmodules(5).
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from neural_ngram.errors import BoundaryError

__all__ = ["dvc_stores", "git_stores"]

_URL = re.compile(r"(\w+)://(.*)", re.DOTALL)
_HERE = ("file", "local")  # DVC's names of this machine's own files
_COPIES = ("objects", "lfs", "annex", "modules")  # within git's folder


def dvc_stores(folders: Iterable[Path]) -> Iterator[str]:
    """Real paths of DVC's caches, and of remotes on this machine, for what lies in `folders`.

    Raises BoundaryError when a configuration file cannot be read.
    """
    places = _around(folders)
    projects = [place / ".dvc" for place in places if (place / ".dvc").is_dir()]
    for project in projects:
        yield os.path.realpath(project / "cache")
    files = [project / name for project in projects for name in ("config", "config.local")]
    callers = [project.parent for project in projects]
    for file in (*_shared_configuration(), *files):
        for place in _places(_configuration(file)):
            yield from map(os.path.realpath, _on_this_machine(place, file.parent, callers))


def _around(folders: Iterable[Path]) -> dict[Path, None]:
    """Folders and those that hold them, as they are named and as they really lie, each once."""
    named = [path for folder in folders for path in (Path.cwd() / folder, folder.resolve())]
    return dict.fromkeys(place for path in named for place in (path, *path.parents))


def _shared_configuration() -> Iterator[Path]:
    """DVC's configuration of the machine and of the user, where DVC looks for them."""
    import platformdirs  # noqa: PLC0415 (nothing else of a stage needs it)

    usual = {
        "DVC_SYSTEM_CONFIG_DIR": platformdirs.site_config_dir("dvc", "iterative"),
        "DVC_GLOBAL_CONFIG_DIR": platformdirs.user_config_dir("dvc", "iterative"),
    }
    yield from (Path(os.environ.get(name) or folder, "config") for name, folder in usual.items())


def _configuration(file: Path) -> dict[str, Any]:
    from configobj import ConfigObj, ConfigObjError  # noqa: PLC0415 (most have one file to read)

    try:
        with file.open(encoding="utf-8") as handle:
            content: dict[str, Any] = ConfigObj(handle).dict()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeError, ConfigObjError) as problem:
        raise BoundaryError(
            f"{file} cannot be read ({problem}), so it is unknown where DVC keeps its copies; "
            "correct it, or set boundary.mode=off"
        ) from problem
    return content


def _places(content: dict[str, Any]) -> Iterator[str]:
    """The folder of the cache and the addresses of all remotes; names of keys in any case."""
    for section, values in content.items():
        key = {"cache": "dir", "remote": "url"}.get((section.lower().split() or [""])[0])
        if key and isinstance(values, dict):
            yield from (text for name, text in values.items() if name.lower() == key)


def _on_this_machine(place: str, beside: Path, callers: Iterable[Path]) -> Iterator[Path]:
    """The paths of a cache or remote; none when it lies elsewhere.

    An address such as file:///copies is meant as a path, but DVC makes a folder named `file:` of
    it, in the folder from which it is called.
    """
    address = _URL.match(place)
    if address is None:
        yield beside / Path(place).expanduser()
    elif address[1] in _HERE:
        yield Path(address[2])
        yield from (caller / place for caller in callers)


def git_stores(folders: Iterable[Path]) -> Iterator[str]:
    """Real paths of git's copies of what lies in `folders`: of their repositories, of those around
    them, and of the repositories whose objects they borrow.
    """
    places = _around(folders)
    named = [os.environ[name] for name in ("GIT_DIR", "GIT_COMMON_DIR") if os.environ.get(name)]
    for start in (*map(Path, named), *(place / ".git" for place in places)):
        common = _common(_followed(start))
        if common.is_dir():
            yield from (os.path.realpath(common / name) for name in _COPIES)
            yield from _borrowed(common / "objects")
    yield from _borrowed_by_environment()


def _followed(git: Path) -> Path:
    """Git's folder: in a worktree or a submodule `.git` is a file that names it."""
    if git.is_file():
        return git.parent / _text(git).removeprefix("gitdir:").strip()
    return git


def _common(git: Path) -> Path:
    """The folder that all worktrees of a repository share."""
    return git / _text(git / "commondir").strip()


def _borrowed(objects: Path, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Objects that a repository takes from others, and these from others in turn."""
    lines = _text(objects / "info/alternates").split("\n")
    for line in (line for line in lines if line and not line.startswith("#")):
        place = os.path.realpath(objects / _unquoted(line))
        if place not in seen:
            yield place
            yield from _borrowed(Path(place), seen | {place})


def _unquoted(name: str) -> str:
    """A file name as git writes it, in quotes when it has unusual bytes."""
    if not name.startswith('"'):
        return name
    return os.fsdecode(os.fsencode(name[1:-1]).decode("unicode_escape").encode("latin-1"))


def _borrowed_by_environment() -> Iterator[str]:
    own = os.environ.get("GIT_OBJECT_DIRECTORY", "")
    others = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "").split(os.pathsep)
    for objects in (Path(place) for place in (own, *others) if place):
        yield os.path.realpath(objects)
        yield from _borrowed(objects)


def _text(file: Path) -> str:
    """A small file of git's; empty when there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
