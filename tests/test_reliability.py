"""docs/reliability.md names tests that exist, each by its file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reliability.md").read_text()
NAMED = re.findall(r"([^\s`]*)::(\w+)", PAGE)


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_each_test_that_holds_a_promise_is_in_the_file_named(file: str, name: str):
    assert f"def {name}(" in (ROOT / "tests" / file).read_text()


@pytest.mark.parametrize("file", sorted(set(re.findall(r"[\w/]*test_\w+\.py", PAGE))))
def test_each_file_of_tests_exists(file: str):
    assert (ROOT / "tests" / file).exists()
