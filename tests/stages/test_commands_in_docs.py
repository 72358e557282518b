"""The blocks of shell commands in the quick start and in the how-tos do what they say."""

import re
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "quickstart.md", *sorted((DOCS / "howto").glob("*.md"))]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_succeed_one_after_another(pipeline, tmp_path: Path, page: Path):
    shutil.copytree(pipeline.folder, tmp_path / "project", symlinks=True)
    project = type(pipeline)(tmp_path / "project")
    blocks = re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    assert blocks
    for block in blocks:
        done = project.run("bash", "-euxc", block)
        assert done.returncode == 0, done.stdout + done.stderr
