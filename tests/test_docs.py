"""README and docs/: links lead somewhere, and each command that is printed can be typed."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from dvc.cli import parse_args
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from neural_ngram.cli.main import main
from neural_ngram.pipeline.configuration import composed

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
LINKS = [
    (page, target)
    for page, text in TEXTS.items()
    for target in re.findall(r"\]\(([^)\s]+)\)", text)
    if "://" not in target
]
TOOLS = ("dvc ", "neural-ngram ", "python -m ", "make ")


def commands(text: str) -> Iterator[str]:
    """The lines of shell blocks, and code within lines that begins with one of our tools."""
    blocks = re.findall(r"^```(?:ba)?sh\n(.*?)^```", text, re.S | re.M)
    yield from (line for block in blocks for line in block.replace("\\\n", "").splitlines())
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    yield from (code for code in re.findall(r"`([^`\n]+)`", prose) if code.startswith(TOOLS))


COMMANDS = sorted(
    {
        (page, line.partition(" #")[0].removeprefix("PYTHONPATH=src ").strip())
        for page, text in TEXTS.items()
        for line in commands(text)
        if "…" not in line and "name=value" not in line and "group=preset" not in line
    }
)


def of(tool: str) -> list[tuple[str, str]]:
    return [(page, line) for page, line in COMMANDS if line.startswith(tool)]


def anchors(page: Path) -> set[str]:
    """The headings as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_each_link_leads_to_a_file_and_a_heading(page: str, target: str):
    path, _, anchor = target.partition("#")
    found = (ROOT / page).parent / path if path else ROOT / page
    assert found.exists()
    assert not anchor or anchor in anchors(found)


def values(override: Override) -> Iterator[str]:
    if override.is_discrete_sweep():
        yield from override.sweep_string_iterator()
    elif override.is_interval_sweep():
        yield str(override.value().start)
    else:
        yield override.get_value_element_as_str()


def each(overrides: list[str]) -> Iterator[list[str]]:
    """What one job after another is given: the values of a sweep, one at a time."""
    parsed = OverridesParser.create().parse_overrides(overrides)
    choices = [list(values(one)) for one in parsed]
    for turn in range(max(map(len, choices), default=0)):
        yield [
            f"{one.get_key_element()}={chosen[turn % len(chosen)]}"
            for one, chosen in zip(parsed, choices, strict=True)
        ]


@pytest.mark.parametrize(("page", "line"), of("dvc exp run") + of("neural-ngram compose"))
def test_the_overrides_of_an_experiment_compose(page: str, line: str):
    words = shlex.split(line)
    pairs = pairwise(words)
    overrides = words[2:] if "compose" in words else [word for flag, word in pairs if flag == "-S"]
    for job in each(overrides):
        made_here = [o for o in job if f"conf/{o.replace('=', '/')}.yaml" in TEXTS[page]]
        made_here += [o for o in job if f'"{o.partition("=")[2]}"' in TEXTS[page]]
        made_here += [o for o in job if f"/{o.partition('=')[2]}.py <<" in TEXTS[page]]
        presets = [o for o in made_here if not (ROOT / f"conf/{o.replace('=', '/')}.yaml").exists()]
        assert composed(ROOT, [o for o in job if o not in presets])


@pytest.mark.parametrize(("page", "line"), of("dvc "))
def test_dvc_knows_the_command(page: str, line: str):
    for command in re.split(r" \| | && |\|\|", line):
        words = shlex.split(re.sub(r"[<>].*", "", command))
        if words[:1] == ["dvc"] and words != ["dvc", "exp", "apply"]:  # named, not typed
            parse_args(words[1:])


@pytest.mark.parametrize(("page", "line"), of("neural-ngram "))
def test_the_subcommand_exists(page: str, line: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as done:
        main([shlex.split(line)[1], "--help"])
    assert done.value.code == 0


@pytest.mark.parametrize(("page", "line"), of("python -m "))
def test_the_module_exists_and_takes_the_overrides(page: str, line: str):
    module, *rest = shlex.split(line)[2:]
    assert find_spec(module)
    overrides = [word for word in rest if not word.startswith(("-", "hydra"))]
    assert all(composed(ROOT, job) for job in each(overrides))


@pytest.mark.parametrize(("page", "line"), of("make "))
def test_make_has_the_target(page: str, line: str):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [word for word in shlex.split(line)[1:] if "=" not in word]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
