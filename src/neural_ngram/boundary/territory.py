"""Which files are closed to a stage, and by which rule.

Closed are, under the working directory and under the root of the DVC project (they differ in
`dvc exp run --temp` and in the queue): `data/`, `artifacts/`, the DVC cache and local remotes,
DVC's temporary folders (other experiments live there), git's objects, and the corpus itself.
Inside them a stage's declared inputs, and the folders of its outputs, are opened again. Of a
closed place inside an opened one, and the other way round, the deepest decides.
"""

import configparser
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neural_ngram.boundary.declaration import Declaration, lookup
from neural_ngram.errors import BoundaryError

__all__ = ["DECLARED", "Territory", "territory"]

SPLITTER = "split-corpus"
RAW = "data/raw"
_SOURCES = ("corpus.path", "corpus.split.lists")

DECLARED = "a stage reads only what it declares in dvc.yaml"
_CACHE = "no stage reads DVC's copies, which hold every partition"
_TEMPORARY = "no stage reads the folders of other experiments"
_OBJECTS = "no stage reads git's copies, which may hold the corpus"
_CORPUS = f"only {SPLITTER} reads the corpus"
_PLACES = {
    "data": DECLARED,
    "artifacts": DECLARED,
    ".dvc/cache": _CACHE,
    ".dvc/tmp": _TEMPORARY,
    ".git/objects": _OBJECTS,
}


@dataclass(frozen=True)
class Territory:
    """Real paths that are closed to a stage, each with its rule, and those opened within them.

    made: folders of the stage's outputs that must exist before the walls stand.
    """

    stage: str
    closed: Mapping[str, str]
    opened: frozenset[str]
    made: tuple[str, ...]

    def rule_against(self, path: str) -> str | None:
        """The rule that closes a path, symbolic links followed; None when it may be read."""
        for place in _upwards(os.path.realpath(path)):
            if place in self.opened:
                return None
            if place in self.closed:
                return self.closed[place]
        return None

    def refusal(self, path: str, rule: str) -> str:
        """What a stage is told that tried to read a closed file."""
        return (
            f"{path} is closed to the stage {self.stage} (rule: {rule}); read another file, or "
            f"declare it under stages.{self.stage}.deps of dvc.yaml and let `make boundary` judge"
        )


def territory(
    declared: Declaration, roots: tuple[Path, Path], parameters: Mapping[str, Any]
) -> Territory:
    """The territory of a stage; `roots` are the working directory and the root of DVC's project.

    Raises BoundaryError when an output has no folder of its own under data/ or artifacts/.
    """
    here = os.path.realpath(roots[0])
    sources = [str(path) for path in (lookup(parameters, name) for name in _SOURCES) if path]
    closed: dict[str, str] = {}
    for root in roots:
        closed |= {os.path.realpath(root / place): rule for place, rule in _PLACES.items()}
        closed |= dict.fromkeys(_stores(root), _CACHE)
        corpora = {os.path.realpath(root / source) for source in sources}
        closed |= {path: _CORPUS for path in corpora if not _holds(path, here)}
    reads = (*declared.reads, *((RAW, *sources) if declared.stage == SPLITTER else ()))
    made = tuple(sorted({_folder(roots[0], name) for name in declared.writes}))
    opened = {path for name in reads for path in _targets(roots[0], name, closed)}
    if declared.stage == SPLITTER:  # the user names the corpus, perhaps through a link
        opened |= {os.path.realpath(roots[0] / source) for source in sources}
    return Territory(declared.stage, closed, frozenset({here, *opened, *made}), made)


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _stores(root: Path) -> Iterator[str]:
    """Where DVC's configuration puts copies: a cache elsewhere, and remotes on this machine."""
    for name in ("config", "config.local"):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(root / ".dvc" / name, encoding="utf-8")
        except configparser.Error:
            continue
        for section in parser.sections():
            key = "dir" if section == "cache" else "url"
            place = parser.get(section, key, fallback="")
            if place and "://" not in place:
                yield os.path.realpath(root / ".dvc" / place)


def _targets(root: Path, name: str, closed: Mapping[str, str]) -> Iterator[str]:
    """The real paths behind a declared path.

    A symbolic link is followed only into the DVC cache, where `cache.type symlink` points: a link
    from a declared name to an undeclared file opens nothing.
    """
    first, _, rest = os.path.normpath(name).partition("/")
    direct = str((root / first).resolve() / rest) if first else name
    real = os.path.realpath(root / name)
    if os.path.normpath(direct) == real or _rule(real, closed) == _CACHE:
        yield real
    for folder, _, files in os.walk(real):
        links = (path for path in map(Path(folder).joinpath, files) if path.is_symlink())
        targets = map(os.path.realpath, links)
        yield from (target for target in targets if _rule(target, closed) == _CACHE)


def _rule(path: str, closed: Mapping[str, str]) -> str | None:
    return next((closed[place] for place in _upwards(path) if place in closed), None)


def _upwards(path: str) -> Iterator[str]:
    """A path and the folders that it lies in, the deepest first."""
    while path not in ("", "/"):
        yield path
        path = path.rpartition("/")[0]


def _folder(root: Path, name: str) -> str:
    """The folder that an output has to itself: the second part of its path."""
    parts = Path(os.path.normpath(name)).parts
    if len(parts) < 2 or (len(parts) == 2 and Path(name).suffix):
        raise BoundaryError(
            f"dvc.yaml has the output {name}, which shares its folder with other stages, so it "
            "could not be read back; give it a folder of its own, as in artifacts/mine/file.csv"
        )
    return os.path.realpath(root.joinpath(*parts[:2]))
