"""No test asserts how long something takes: a busy machine, or a slower one, breaks nothing.

What must be bounded is counted, or given a clock of its own; what it costs is a row of `make
bench`. Who waits for another process waits with patience (patience.py).
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FUNCTIONS = (
    r"(perf_counter|monotonic|process_time|thread_time)(_ns)?|default_timer|getrusage|timeit"
)
CLOCK = re.compile(rf"(.*\.)?({FUNCTIONS})|time\.time(_ns)?|os\.times|datetime\.(now|utcnow)")
WITHIN_A_TEXT = re.compile(rf"\b({FUNCTIONS}|time\.time)\(")


def named(node: ast.AST) -> set[str]:
    """The variables and dotted names in a piece of code."""
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def flows(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Where values come from, and where they go to."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from zip(values, targets, strict=True)
            case ast.Assign(targets=targets, value=value):
                yield from ((value, target) for target in targets)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                yield value, target
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="append" | "extend")):
                yield node, owner
            case ast.FunctionDef(name=name):
                kept = (part for part in ast.walk(node) if isinstance(part, ast.Return | ast.Yield))
                yield from ((part, ast.Name(name)) for part in kept)


def from_a_clock(tree: ast.AST) -> set[str]:
    """The names in which the reading of a clock may be."""
    known = {name for name in named(tree) if CLOCK.fullmatch(name)}
    while True:
        reached = (named(target) for value, target in flows(tree) if named(value) & known)
        more = set().union(*reached) - known
        if not more:
            return known
        known |= more


def complaints(source: str) -> list[str]:
    """What in a file of tests depends on how fast a machine is."""
    tree = ast.parse(source)
    timed = from_a_clock(tree)
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test) if named(test) & timed:
                found.append(f"line {node.lineno} asserts a time: {ast.unparse(test)}")
            case ast.keyword(arg="timeout", value=ast.Constant(value=int() | float())):
                found.append(f"line {node.value.lineno} waits {node.value.value} s: use PATIENCE")
            case ast.Constant(value=str(text)) if WITHIN_A_TEXT.search(text):
                found.append(f"line {node.lineno} reads a clock in a program of its own")
    return found


FILES = sorted(path for path in TESTS.rglob("*.py") if path != Path(__file__))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_nothing_asserts_a_time(path: Path):
    assert complaints(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "start = time.perf_counter()\nwork()\nassert time.perf_counter() - start < 20",
        "from time import monotonic\nstart = monotonic()\ntook = monotonic() - start\nassert took",
        "costs = []\nfor _ in range(3):\n    costs.append(timeit(work))\nassert min(costs) < 50",
        "def took():\n    return time.process_time_ns()\nlimit = 5 + took()\nassert f(limit)",
        "(before, other) = time.time(), 3\nassert sum(t - before for t in ends) < 1",
        "with clock() as c:\n    pass\nassert (end := time.monotonic()) > 3",
        "CODE = 'import time; print(time.process_time())'",
        "process.wait(timeout=60)",
    ],
)
def test_what_depends_on_a_clock_is_found(source: str):
    assert len(complaints(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "end = time.monotonic() + 60\nwhile time.monotonic() < end:\n    n += 1\nassert done",
        "process.wait(timeout=PATIENCE)\nassert process.returncode == 0",
        "monkeypatch.setattr('time.perf_counter', lambda: clock.now)\nassert lock.held",
        "assert run.info.end_time == 3",
    ],
)
def test_what_does_not_is_left_alone(source: str):
    assert complaints(source) == []
