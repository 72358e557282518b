"""What may flow where: proved from the stages' inputs and outputs, with every path that exists.

A path goes from a file that holds a partition, through a stage that reads it, to what that stage
writes, and on. A stage is taken to put all that it reads into all that it writes, apart from the
links of APART, each of which a test holds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from neural_ngram.boundary.declaration import Declaration
from neural_ngram.errors import BoundaryError

__all__ = ["APART", "RULES", "SCORER", "Rule", "prove", "render", "require_seal", "walks"]

Walk = tuple[str, ...]

TOKENIZER, WINDOWS, MODEL = "artifacts/tokenizer", "data/windows", "artifacts/model"
TEST, TEST_FIGURES = "data/splits/test.parquet", "artifacts/test"
SCORER = "evaluate-test"


@dataclass(frozen=True)
class Rule:
    """Files that hold a partition, or tell of it, and what they must never flow into."""

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


def walks(stages: Iterable[Declaration], source: str) -> Iterator[Walk]:
    """Every path from `source`, as file, stage, file, stage, …, file; longer ones after shorter.

    A path ends in a stage when that writes nothing, and goes through no stage twice.
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
            steps = [step for step in longer if (walk[-1], *step[-2:]) not in APART]
            yield from steps or [(*walk, stage.stage)]
            waiting += steps


def prove(stages: Iterable[Declaration], rules: Iterable[Rule] = RULES) -> dict[str, list[Walk]]:
    """The paths that exist from each partition.

    Raises BoundaryError naming the first path that must not exist.
    """
    known = list(stages)
    found = {rule: [walk for s in rule.sources for walk in walks(known, s)] for rule in rules}
    for rule, paths in found.items():
        for walk in paths:
            broken = next((sink for sink in rule.never if _touch(walk[-1], sink)), None)
            if broken and len(walk) % 2:
                raise BoundaryError(
                    f"{rule.partition} documents must never flow into {broken}, but they do: "
                    f"{' → '.join(walk)}; take {walk[-3]} from the deps of {walk[-2]} in dvc.yaml"
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
                    f"{TEST}, and no stage reads {TEST_FIGURES}: take it from the deps of "
                    f"{stage.stage} in dvc.yaml, or run `dvc repro` if dvc.lock alone has it"
                )


def render(found: dict[str, list[Walk]], rules: Iterable[Rule] = RULES) -> Iterator[str]:
    """Lines that tell what was proved: of each partition its longest paths, and what is apart."""
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


def _touch(one: str, other: str) -> bool:
    """Whether two paths are the same, or one holds the other."""
    shorter, longer = sorted((one.rstrip("/") + "/", other.rstrip("/") + "/"), key=len)
    return longer.startswith(shorter)
