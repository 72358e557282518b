"""What docs/reliability.md and docs/boundary.md promise is proved by tests that say so.

A test that holds a promise bears the mark `promise` with the name of the page; the page names it,
by its file. `pytest -m promise` runs them all.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGES = ("boundary", "reliability")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:stages/)?test_\w+\.py")


@cache
def named(page: str) -> list[tuple[str, str]]:
    """The (file, test) that a page names; without a test, a file as a whole.

    A test stands as `file::name`, or after the file in the same row of a table.
    """
    found = []
    for line in (TESTS.parent / f"docs/{page}.md").read_text(encoding="utf-8").splitlines():
        file = ""
        for code in CODE.findall(line):
            path, _, test = code.partition("::")
            if FILE.fullmatch(path):
                file = path
                found.append((file, test))
            elif re.fullmatch(r"test_\w+", code):
                found.append((file, code))
    return found


def pages_of(test: ast.FunctionDef) -> Iterator[str]:
    """The pages in the marks of a test."""
    for mark in test.decorator_list:
        match mark:
            case ast.Call(func=ast.Attribute(attr="promise"), args=[ast.Constant(value=str(page))]):
                yield page


@cache
def held_in(file: str) -> dict[str, list[str]]:
    """The tests of a file, each with the pages whose promises it holds."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {test.name: [*pages_of(test)] for test in tests if test.name.startswith("test_")}


@pytest.mark.parametrize(
    ("page", "file", "test"),
    sorted({(page, *place) for page in PAGES for place in named(page)}),
)
def test_what_a_page_names_is_a_test_with_its_mark(page: str, file: str, test: str):
    if test:
        assert page in held_in(file)[test], f'mark it with @pytest.mark.promise("{page}")'
    else:
        assert held_in(file)


def test_what_bears_a_mark_is_named_by_its_page():
    files = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))
    marked = {
        (page, file, test)
        for file in files
        for test, pages in held_in(file).items()
        for page in pages
    }
    assert len(marked) > 50
    assert marked - {(page, *place) for page in PAGES for place in named(page)} == set()
