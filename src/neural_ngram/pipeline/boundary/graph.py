"""What may flow where: proved from the stages' inputs and outputs, with every path that exists.

A path goes from a file that holds a partition, through a stage that reads it, to what that stage
writes, and on. A stage is taken to put all that it reads into all that it writes, apart from the
links of APART, each of which is proved by a test. Files are compared by their real paths, so
another spelling or a symbolic link on the way does not make them different files.
"""

import os
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.declaration import Declaration

__all__ = ["APART", "RULES", "SCORER", "Rule", "prove", "render", "require_seal", "walks"]

Walk = tuple[str, ...]

TOKENIZER, WINDOWS, MODEL = "artifacts/tokenizer", "data/windows", "artifacts/model"
TEST, TEST_FIGURES = "data/splits/test.parquet", "artifacts/test"
SCORER = "evaluate-test"


@dataclass(frozen=True)
class Rule:
    """Files that contain a partition, or figures of it, and what they must never flow into."""

    partition: str
    sources: tuple[str, ...]
    never: tuple[str, ...]


RULES = (
    Rule(
        "test",
        ("data/splits/test.parquet", "data/splits/manifest.csv", "artifacts/split"),
        (TOKENIZER, WINDOWS, MODEL),
    ),
    Rule("validation", ("data/splits/validation.parquet",), (TOKENIZER, MODEL)),
)
APART = {
    ("data/splits/validation.parquet", "build-windows", "data/windows/train"): (
        "each partition is encoded alone"
    ),
    ("data/windows/validation", "train", "artifacts/model"): "scored, not learned",
}


def walks(
    stages: Iterable[Declaration], source: str, apart: Container[Walk] = APART
) -> Iterator[Walk]:
    """Every path from `source`, as file, stage, file, stage, …, file; longer ones after shorter.

    A path ends in a stage when that writes nothing, and goes through no stage twice. `apart` holds
    the steps that a stage keeps apart.
    """
    known = list(stages)
    waiting: list[Walk] = [(source,)]
    while waiting:
        walk = waiting.pop(0)
        for stage in known:
            entry = next((read for read in stage.reads if _touch(read, walk[-1])), None)
            if entry is None or stage.stage in walk:
                continue
            longer = [(*walk, stage.stage, made) for made in stage.writes]
            steps = [step for step in longer if (walk[-1], *step[-2:]) not in apart]
            yield from steps or [(*walk, stage.stage)]
            waiting += steps


def prove(
    stages: Iterable[Declaration], rules: Iterable[Rule] = RULES, root: Path = Path()
) -> dict[str, list[Walk]]:
    """The paths that exist from each partition; names are relative to the project's `root`.

    Raises BoundaryError naming the first path that must not exist.
    """
    sources = {rule: [_place(name, root) for name in rule.sources] for rule in rules}
    known = _connected(
        list(_placed(stages, root)), {n for names in sources.values() for n in names}
    )
    apart = {(_place(read, root), stage, _place(made, root)) for read, stage, made in APART}
    found = {
        rule: [walk for name in names for walk in walks(known, name, apart)]
        for rule, names in sources.items()
    }
    for rule, paths in found.items():
        for walk in paths:
            broken = next((n for n in rule.never if _touch(walk[-1], _place(n, root))), None)
            if broken and len(walk) % 2:
                raise BoundaryError(
                    f"{rule.partition} documents must never flow into {broken}, but they do: "
                    f"{' → '.join(walk)}; remove {walk[-3]} from the deps of {walk[-2]} in dvc.yaml"
                )
    return {rule.partition: paths for rule, paths in found.items()}


def require_seal(stages: Iterable[Declaration]) -> None:
    """Raise BoundaryError when a figure on test could come back from DVC's cache without its line.

    Only evaluate-test, whose outputs enter no cache, reads test, and no stage reads what it writes.
    """
    for stage in stages:
        for read in stage.reads:
            if _touch(read, TEST_FIGURES) or (stage.stage != SCORER and _touch(read, TEST)):
                raise BoundaryError(
                    f"{stage.stage} reads {read}, so what it writes could bring a figure on test "
                    f"back from DVC's cache without its line in the ledger; only {SCORER} reads "
                    f"{TEST}, and no stage reads {TEST_FIGURES}: remove it from the deps of "
                    f"{stage.stage} in dvc.yaml, or run `dvc repro` if dvc.lock alone has it"
                )


def render(found: dict[str, list[Walk]], rules: Iterable[Rule] = RULES) -> Iterator[str]:
    """Lines that report what was proved: each partition's longest paths, and what is kept apart."""
    for rule in rules:
        yield f"{rule.partition}: no path to {', '.join(rule.never)}"
        paths = found[rule.partition]
        starts = {path[:n] for path in paths for n in range(1, len(path))}
        ends: defaultdict[Walk, list[str]] = defaultdict(list)
        for *way, end in (path for path in paths if path not in starts):
            ends[tuple(way)].append(end)
        yield from (f"  {' → '.join(way)} → {', '.join(made)}" for way, made in ends.items())
        if not paths:
            yield "  no stage reads it"
    yield "kept apart within a stage:"
    yield from (
        f"  {read} ↛ {made} in {stage}: {why}" for (read, stage, made), why in APART.items()
    )


def _connected(stages: list[Declaration], sources: Iterable[str]) -> list[Declaration]:
    """The same stages without the reads that no stage writes and no rule names: most of them."""
    flowing = set(sources).union(*(stage.writes for stage in stages))

    @cache
    def flows(read: str) -> bool:
        return any(_touch(read, name) for name in flowing)

    return [replace(stage, reads=tuple(filter(flows, stage.reads))) for stage in stages]


def _placed(stages: Iterable[Declaration], root: Path) -> Iterator[Declaration]:
    """The same stages with each file by its real path."""
    place = cache(partial(_place, root=root))
    for stage in stages:
        reads, writes = (tuple(map(place, names)) for names in (stage.reads, stage.writes))
        yield replace(stage, reads=reads, writes=writes)


def _place(name: str, root: Path) -> str:
    """Where a file really lies: relative to the project, `.` for the project and what holds it."""
    real, top = os.path.realpath(root / name), os.path.realpath(root)
    if (top + "/").startswith(real.rstrip("/") + "/"):
        return "."
    return real.removeprefix(top + "/")


def _touch(one: str, other: str) -> bool:
    """Whether two paths are the same, or one holds the other."""
    if "." in (one, other):
        return True
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)
