"""Which files are closed to a stage, and by which rule.

Closed are, under the working directory and under the root of the DVC project (they differ in
`dvc exp run --temp` and in the queue): `data/`, `artifacts/`, DVC's caches and local remotes,
DVC's temporary folders (of other experiments), git's objects, and the corpus itself with what its
links point to. Inside them a stage's declared inputs, and the folders of its outputs, are opened
again. Where closed and opened paths are nested, the deepest decides.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.declaration import Declaration, lookup
from neural_ngram.pipeline.boundary.stores import dvc_stores, git_stores

__all__ = ["DECLARED", "Rules", "require_readable", "rules"]

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
class Rules:
    """Real paths that are closed to a stage, each with its rule, and those opened within them.

    made: folders of the stage's outputs that must exist before the sandbox closes.
    needed: declared inputs among what is opened, which must exist then to be readable.
    """

    stage: str
    closed: Mapping[str, str]
    opened: frozenset[str]
    made: tuple[str, ...]
    needed: tuple[str, ...] = ()

    def rule_against(self, path: str) -> str | None:
        """The rule that closes a path, symbolic links followed; None when it may be read."""
        for place in _upwards(os.path.realpath(path)):
            if place in self.opened:
                return None
            if place in self.closed:
                return self.closed[place]
        return None

    def rule_within(self, path: str) -> str | None:
        """The rule that closes something within a folder, which moves along with it; or None."""
        real = os.path.realpath(path)
        return next((self.closed[place] for place in self.closed if _holds(real, place)), None)

    def refusal(self, path: str, rule: str) -> str:
        """The message for a stage that tried to read a closed file."""
        return (
            f"{path} is closed to the stage {self.stage} (rule: {rule}); read another file, or "
            f"declare it under stages.{self.stage}.deps of dvc.yaml and run `make boundary`"
        )


def rules(declared: Declaration, roots: tuple[Path, Path], parameters: Mapping[str, Any]) -> Rules:
    """The rules of a stage; `roots` are the working directory and the root of DVC's project.

    Raises BoundaryError when an output has no folder of its own under data/ or artifacts/, when a
    declared input is one that no stage, or only another, may read, or when the corpus is a folder
    that holds the project.
    """
    here = roots[0]
    splits = declared.stage == SPLITTER
    closed, corpus = _closed(roots, parameters)
    names = [*declared.reads, *(_sources(parameters) if splits else ())]
    for name in names:
        _require_readable(declared.stage, here, name, closed)
    made = {_folder(here, name) for name in (*declared.writes, *((RAW,) if splits else ()))}
    opened = {path for name in names for path in _targets(here, name, closed)}
    if splits:  # the user names the corpus, perhaps through links
        opened |= {path for path in corpus if _rule(path, closed) in (_CORPUS, _CACHE)}
    opened |= {os.path.realpath(root) for root in roots}
    reads = (os.path.realpath(here / name) for name in declared.reads)
    needed = tuple(path for path in reads if _rule(path, closed) not in (None, _CORPUS))
    return Rules(declared.stage, closed, frozenset(opened | made), tuple(sorted(made)), needed)


def require_readable(
    stages: Iterable[Declaration], roots: tuple[Path, Path], parameters: Mapping[str, Any]
) -> None:
    """Raise BoundaryError for an input of a stage that no declaration opens to it."""
    closed, _ = _closed(roots, parameters)
    for stage in stages:
        for name in stage.reads:
            _require_readable(stage.stage, roots[0], name, closed)


def _closed(
    roots: tuple[Path, Path], parameters: Mapping[str, Any]
) -> tuple[dict[str, str], list[str]]:
    """What is closed to all stages, and which of it is the corpus of the working directory."""
    closed: dict[str, str] = {}
    corpora = {root: _corpus(root, parameters) for root in roots}
    for root, corpus in corpora.items():
        closed |= {os.path.realpath(root / place): rule for place, rule in _PLACES.items()}
        closed |= dict.fromkeys(corpus, _CORPUS)
    folders = list(dict.fromkeys(_kept_in(roots, corpora.values())))
    closed |= dict.fromkeys(dvc_stores(folders), _CACHE)
    closed |= dict.fromkeys(git_stores(folders), _OBJECTS)
    return closed, corpora[roots[0]]


def _kept_in(roots: tuple[Path, Path], corpora: Iterable[list[str]]) -> Iterator[Path]:
    """The folders whose content DVC or git may have copied: the projects', and of corpora."""
    yield from roots
    for path in (Path(path) for corpus in corpora for path in corpus):
        yield path if path.is_dir() else path.parent


def _sources(parameters: Mapping[str, Any]) -> list[str]:
    """Files and folders that the settings name as the corpus, or as lists of its partitions."""
    named = [str(path) for path in (lookup(parameters, name) for name in _SOURCES) if path]
    urls = str(lookup(parameters, "corpus.url") or "").split()
    return named + [unquote(urlsplit(url).path) for url in urls if url.startswith("file:")]


def _corpus(root: Path, parameters: Mapping[str, Any]) -> list[str]:
    """Real paths of the corpus, of what links in its folder point to, and of what is fetched."""
    found = [os.path.realpath(root / RAW)]
    for name in _sources(parameters):
        path = os.path.realpath(root / name)
        if _holds(path, os.path.realpath(root)):
            raise BoundaryError(
                f"the corpus {name} is the folder {path}, which holds the project itself with all "
                "that it made; move the text into a folder of its own and set corpus.path to that"
            )
        linked = map(os.path.realpath, _links(path))
        found += [path, *(end for end in linked if not _holds(end, os.path.realpath(root)))]
    return found


def _links(folder: str) -> Iterator[str]:
    """The symbolic links in a folder and in those below it."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # a file, or nothing at all, which the stage itself will report
        return
    for entry in entries:
        if entry.is_symlink():
            yield entry.path
        elif entry.is_dir():
            yield from _links(entry.path)


def _require_readable(stage: str, here: Path, name: str, closed: Mapping[str, str]) -> None:
    """Raise BoundaryError for an input that no declaration opens to this stage."""
    project, real = os.path.realpath(here), os.path.realpath(here / name)
    places = takewhile(lambda place: place != project, _upwards(real))
    rule = next((closed[place] for place in places if place in closed), None)
    allowed = rule is None or (rule == _CORPUS and stage == SPLITTER)
    own = rule == DECLARED and _holds(project, real)
    if not (allowed or own or _is_link(here, name)):
        raise BoundaryError(
            f"{stage} would read {name}, which is closed to it whatever dvc.yaml declares (rule: "
            f"{rule}); name another file in dvc.yaml, or in the setting that names this one"
        )


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_link(root: Path, name: str) -> bool:
    """Whether symbolic links below the first folder of `name` lead to another place."""
    first, _, rest = os.path.normpath(name).partition("/")
    direct = str((root / first).resolve() / rest) if first else name
    return os.path.normpath(direct) != os.path.realpath(root / name)


def _targets(root: Path, name: str, closed: Mapping[str, str]) -> Iterator[str]:
    """The real paths behind a declared path.

    A symbolic link is followed only into the DVC cache, where `cache.type symlink` points: a link
    from a declared name to an undeclared file opens nothing.
    """
    real = os.path.realpath(root / name)
    if not _is_link(root, name) or _rule(real, closed) == _CACHE:
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
