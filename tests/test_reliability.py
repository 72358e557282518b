"""docs/reliability.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reliability.md").read_text()
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"::(test_\w+)", PAGE))))
def test_each_test_that_holds_a_promise_exists(name: str):
    assert f"def {name}(" in TESTS


@pytest.mark.parametrize("file", sorted(set(re.findall(r"[\w/]*test_\w+\.py", PAGE))))
def test_each_file_of_tests_exists(file: str):
    assert (ROOT / "tests" / file).exists()
