"""What is installed for what: the library alone, the pipeline, the tools of development."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALONE = ROOT / "tests/alone.py"
AROUND = {"dvc", "hydra", "mlflow", "omegaconf", "altair", "vl_convert", "nicegui", "onnx", "scipy"}
PROGRAMS = "dvc|lint-imports|mlflow|mypy|neural-ngram|pip|pytest|python|ruff"


def closure(requirements: Iterable[str]) -> Iterator[str]:
    """The distributions that an installation of these brings along, by canonical name."""
    waiting, known = [Requirement(each) for each in requirements], set[tuple[str, str]]()
    while waiting:
        wanted = waiting.pop()
        extras = ["", *wanted.extras]
        name = canonicalize_name(wanted.name)
        yield name
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:  # for another platform, or an optional one
            continue
        for extra in extras:
            if (name, extra) in known:
                continue
            known.add((name, extra))
            for need in map(Requirement, needs):
                if need.marker is None or need.marker.evaluate({"extra": extra}):
                    waiting.append(need)


def absent_from_the_library() -> set[str]:
    """Modules that are installed here but not where the library alone is."""
    core = set(closure(PROJECT["dependencies"])) | {"neural-ngram", "setuptools", "pip"}
    return {
        module
        for module, homes in packages_distributions().items()
        if core.isdisjoint(map(canonicalize_name, homes)) and module.isidentifier()
    }


def check(done: subprocess.CompletedProcess[str]) -> str:
    """What the library answers is what text of period three must come to; where it came from."""
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["first_loss"] == pytest.approx(math.log(3), abs=0.2)
    assert found["loss"] < 0.05
    assert found["score"] < 0.05
    assert found["greedy"] == "abcabcabc"
    assert 0 < found["baseline"] < math.log(3)
    origin: str = found["from"]
    return origin


def alone(python: str, folder: Path, missing: Iterable[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, str(ALONE), str(folder), *sorted(missing)],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_library_trains_and_samples_without_the_packages_of_the_pipeline(tmp_path: Path):
    missing = absent_from_the_library()
    assert missing >= AROUND
    check(alone(sys.executable, tmp_path, missing))


def test_a_package_that_the_library_needs_is_missed_when_it_is_not_there(tmp_path: Path):
    done = alone(sys.executable, tmp_path, ["tokenizers"])
    assert done.returncode != 0
    assert "No module named 'tokenizers'" in done.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "sys.argv = ['neural-ngram', 'compose']\n"
            "from neural_ngram.cli.command import main; sys.exit(main())",
            "the command needs hydra, which is not installed; pip install 'neural-ngram[pipeline]'",
        ),
        (
            "from neural_ngram.corpus.duplicates import links\n"
            "from neural_ngram.corpus.document import Document\n"
            "from neural_ngram.errors import CorpusError\n"
            "try: links([Document(id='a', text='a text')], 0.5)\n"
            "except CorpusError as problem: sys.exit(str(problem))",
            "the search for near duplicates needs datasketch, which is not installed; "
            "pip install 'neural-ngram[pipeline]'",
        ),
    ],
)
def test_what_needs_the_pipeline_says_how_to_install_it(code: str, message: str):
    prepared = (
        f"import sys; sys.path.insert(0, {str(ALONE.parent)!r}); from missing import Missing\n"
        "sys.meta_path.insert(0, Missing(['hydra', 'datasketch']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", prepared + code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def planned(target: str, folder: Path) -> list[str]:
    """What `make target` would run in a checkout where nothing is installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(
        ["make", "-n", target], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def installed(lines: Iterable[str]) -> list[str]:
    return [extra for line in lines for extra in re.findall(r"'\.\[(.*)\]'", line)]


def test_repro_installs_no_tools_of_development_and_test_does(tmp_path: Path):
    for target in ("repro", "ui", "boundary", "replay", "results", "literature"):
        assert installed(planned(target, tmp_path)) == ["pipeline"], target
    for target in ("test", "test-slow", "lint", "bench"):
        assert installed(planned(target, tmp_path)) == ["pipeline", "dev"], target
    extras = PROJECT["optional-dependencies"]
    assert not set(closure(extras["pipeline"])) & {"pytest", "mypy", "ruff", "gensim", "nicegui"}


@pytest.mark.parametrize("target", ["repro", "test", "lint", "ui", "bench", "replay", "literature"])
def test_make_names_each_program_by_its_path(target: str, tmp_path: Path):
    """GNU make 3.81 looks up a plain command in its own PATH, not in the one that it exports."""
    for line in planned(target, tmp_path):
        if not line.startswith("echo "):
            assert not re.search(rf"(?<![\w./-])({PROGRAMS}) (?!install)", line), line


@pytest.mark.slow
def test_the_wheel_in_an_empty_environment_is_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Installs all that the wheel asks for, and nothing else: over a gigabyte."""
    monkeypatch.delenv("PYTHONPATH", raising=False)  # pip takes what lies there for installed
    pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels, home, source = (tmp_path / name for name in ("wheels", "environment", "source"))
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source)],
        check=True,
    )
    (wheel,) = wheels.glob("neural_ngram-*.whl")
    assert "neural_ngram/generation/trained.py" in ZipFile(wheel).namelist()
    venv.create(home, with_pip=True)
    python = str(home / "bin/python")
    constraints = str(ROOT / "constraints.txt")
    subprocess.run([python, *pip, "install", "--constraint", constraints, str(wheel)], check=True)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    names = {canonicalize_name(line.partition("==")[0]) for line in listed.stdout.splitlines()}
    assert names >= {"neural-ngram", "torch", "tokenizers", "safetensors"}
    assert not names & {"dvc", "hydra-core", "omegaconf", "mlflow", "mlflow-skinny", "scipy"}
    origin = check(alone(python, tmp_path, []))
    assert Path(origin).is_relative_to(home)
    command = str(home / "bin/neural-ngram")
    explained = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert "neural-ngram COMMAND --help" in explained.stdout
    proof = subprocess.run(
        [command, "boundary"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert proof.returncode == 1
    assert "pip install 'neural-ngram[pipeline]'" in proof.stderr
