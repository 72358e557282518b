"""The sandbox around a stage, tried for real: each attempt is made, in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import yaml
from mlflow import MlflowClient

from neural_ngram.pipeline.boundary import landlock

ROOT = Path(__file__).parents[2]
SECRET = "the secret of the test partition"
BY_PYTHON = {  # what the audit hook sees when it stands alone
    *("open", "os.open", "pathlib", "mmap", "numpy.memmap", "pandas csv"),
    *("symlink by open", "cache by open", "around by installed code"),
    *("os.open in a folder", "os.open in the project", "os.open in a folder above"),
    *("hard link", "rename", "hard link in a folder", "rename in a folder"),
    *("rename of the folder", "rename of the folder above"),
}
kernel = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")
# Seccomp makes Landlock's first call answer ENOSYS, as a kernel without it does.
WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
head = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(head), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def lay_out(root: Path, *, mode: str = "enforced") -> Path:
    """A project with only what the attempts need, the test partition in many formats."""
    for name in ("splits", "windows/train", "windows/validation", "corpus"):
        (root / "data" / name).mkdir(parents=True)
    for name in (".dvc/cache/files/md5/ab", ".dvc/tmp/exps/other", "artifacts/model"):
        (root / name).mkdir(parents=True)
    splits = root / "data/splits"
    for name in ("train", "validation", "test"):
        pd.DataFrame({"id": ["1"], "text": [SECRET]}).to_parquet(splits / f"{name}.parquet")
    secret = np.frombuffer(SECRET.encode(), np.uint8)
    safetensors.numpy.save_file({"text": secret}, splits / "test.safetensors")
    for name in (
        *("data/splits/test.txt", "data/corpus/corpus.txt", "data/windows/train/own.txt"),
        *(".dvc/cache/files/md5/ab/cdef", ".dvc/tmp/exps/other/test.txt"),
    ):
        (root / name).write_text(SECRET + "\n")
    shutil.copy(ROOT / "dvc.yaml", root)
    parameters = yaml.safe_load((ROOT / "params.yaml").read_text())
    parameters["corpus"] |= dict.fromkeys(("path", "dependency"), "data/corpus/corpus.txt")
    parameters["boundary"]["mode"] = mode
    (root / "params.yaml").write_text(yaml.safe_dump(parameters))
    (root / ".gitignore").write_text("*\n!data/\n!data/corpus/\n!data/corpus/*\n")
    for command in ("init -q", "add -A", "-c user.name=t -c user.email=t@example.org commit -qm a"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    return root


def attempts(
    here: Path, *, root: Path | None = None, stage: str = "train", before: tuple[str, ...] = ()
) -> dict[str, str]:
    """What came of each attempt that `stage`, run in `here`, made on the data of `root`."""
    root = root or here
    script = here / "attempts" / f"{stage}.py"
    script.parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / "tests/stages/attempts.py", script)
    for link in (here / "linked.txt", here / "data/windows/train/linked.txt"):
        link.unlink(missing_ok=True)
        link.symlink_to(root / "data/splits/test.txt")
    done = subprocess.run(
        [*before, sys.executable, str(script)],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}
        | {"ATTEMPTED": str(root), "DVC_ROOT": str(root), "GIT_CONFIG_GLOBAL": "/dev/null"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told | {"printed": done.stdout}


def assert_all_refused(told: dict[str, str], stage: str) -> None:
    told.pop("printed")
    assert told.pop("kind") == "landlock"
    assert told.pop("what is open") == "read"
    assert "read" not in told.values(), told
    assert not [name for name, text in told.items() if SECRET in text]
    unnamed = {"git"}  # another program tells of it, without the file
    for name in told.keys() - unnamed:
        assert f"is closed to the stage {stage} (rule: " in told[name], (name, told[name])


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("attempts") / "project")


@pytest.mark.promise("boundary")
def test_the_attempts_are_real_without_the_sandbox(tmp_path: Path):
    told = attempts(lay_out(tmp_path / "project", mode="off"))
    assert "boundary.mode=off" in told.pop("printed")
    assert told.pop("kind") == "off"
    assert set(told.values()) == {"read"}


@pytest.mark.promise("boundary")
@kernel
@pytest.mark.parametrize("stage", ["train", "learn-bpe"])
def test_no_way_to_the_test_partition_is_open(laid_out: Path, stage: str):
    told = attempts(laid_out, stage=stage.replace("-", "_"))
    assert "test.txt is closed" in told["open"]
    assert "only split-corpus reads the corpus" in told["corpus"]
    assert_all_refused(told, stage)


@pytest.mark.promise("boundary")
@kernel
def test_nor_is_the_main_checkout_from_a_temporary_run(tmp_path: Path):
    main = lay_out(tmp_path / "main")
    here = main / ".dvc/tmp/exps/own"
    (here / "data/windows/train").mkdir(parents=True)
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(main / name, here)
    assert_all_refused(attempts(here, root=main), "train")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can pass through, but only root can list, as homes often are."""
    folder = Path(tempfile.mkdtemp(prefix="boundary-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def nobody() -> tuple[str, ...]:
    """What stands before a command that an ordinary user runs, its interpreter within reach.

    Where that lies under a closed home, an open folder with only that in it takes the home's place,
    in a view of the file system that the command has to itself.
    """
    needed = {Path(name).resolve() for name in (sys.base_prefix, sys.prefix, ROOT)}
    homes = {path: home for path in sorted(needed) if (home := outermost_closed(path))}
    views = {path: f"/mnt/{number}" for number, path in enumerate(homes)}
    steps = [
        *("set -e", "mount -t tmpfs tmpfs /mnt"),
        *(f"mkdir {view}; mount --bind '{path}' {view}" for path, view in views.items()),
        *(f"mount -t tmpfs -o mode=755 tmpfs '{home}'" for home in set(homes.values())),
        *(f"mkdir -p '{path}'; mount --move {view} '{path}'" for path, view in views.items()),
        'exec "$@"',
    ]
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    command = ("unshare", "--mount", "sh", "-c", "; ".join(steps), "sh", *user)
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    return command


def outermost_closed(path: Path) -> Path | None:
    """The first folder on the way to `path` that other users may not enter."""
    return next((p for p in reversed(path.parents) if not p.stat().st_mode & 0o001), None)


@pytest.mark.promise("boundary")
@kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="becoming another user needs setpriv")
def test_the_sandbox_holds_for_an_ordinary_user(open_folder: Path, nobody: tuple[str, ...]):
    project = lay_out(open_folder / "project")
    for path in (project, *project.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    asked = [*nobody, sys.executable, "-c", "import os; print(os.geteuid())"]
    assert subprocess.run(asked, stdout=subprocess.PIPE, check=True).stdout == b"65534\n"
    assert_all_refused(attempts(project, before=nobody), "train")


@pytest.mark.promise("boundary")
@kernel
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="becoming another user needs setpriv")
def test_an_ordinary_user_runs_the_pipeline_in_the_sandbox(
    project, open_folder: Path, nobody: tuple[str, ...]
):
    own = type(project)(project.folder.rename(open_folder / "project"))
    own.environment |= {"HOME": str(own.folder), "DVC_SITE_CACHE_DIR": "runs/site"}
    for path in (own.folder, *own.folder.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    done = own.run(*nobody, "dvc", "exp", "run", "-S", "training.max_steps=30")
    assert done.returncode == 0, done.stdout + done.stderr
    client = MlflowClient(f"sqlite:///{own.folder / 'runs/mlflow.db'}")
    (run,) = client.search_runs(["1"])
    kinds = {name: kind for name, kind in run.data.tags.items() if name.startswith("boundary")}
    stages = ("boundary", "boundary.train", "boundary.evaluate", "boundary.generate")
    assert kinds == dict.fromkeys(stages, "landlock")


@pytest.mark.promise("boundary")
def test_what_a_stage_keeps_apart_is_apart(pipeline, tmp_path: Path):
    """The two exceptions of boundary.graph.APART: other validation text, the same model."""
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    project = type(pipeline)(tmp_path / "copy")
    kept = ("data/windows/train", "artifacts/model")
    before = contents(project.folder, kept)
    documents = project.folder / "data/splits/validation.parquet"
    pd.read_parquet(documents).assign(text="quite another text").to_parquet(documents)
    for stage in ("build_windows", "train"):
        done = project.stage(stage)
        assert done.returncode == 0, done.stderr
    assert contents(project.folder, kept) == before


def contents(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    files = [path for name in names for path in sorted((folder / name).rglob("*"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}


@pytest.mark.promise("boundary")
@pytest.mark.parametrize("lacking", [True, False], ids=["no Landlock", "mode=audit"])
def test_the_audit_hook_alone_says_so_and_holds_python(tmp_path: Path, lacking: bool):
    project = lay_out(tmp_path / "project", mode="enforced" if lacking else "audit")
    told = attempts(project, before=(sys.executable, "-c", WITHOUT_LANDLOCK) if lacking else ())
    assert "only Python's own reads of closed files are refused" in told.pop("printed")
    assert told.pop("kind") == "audit"
    held = {name for name, text in told.items() if "is closed to the stage train" in text}
    assert held == BY_PYTHON
    assert {told[name] for name in told.keys() - held} == {"read"}


@pytest.mark.promise("boundary")
@pytest.mark.parametrize(
    ("override", "told"),
    [
        (
            "training.vectors_dependency=data/splits/test.parquet",
            "data/splits/test.parquet → train → artifacts/model",
        ),
        ("training.vectors_dependency=data/splits/../splits", "must never flow into"),
        ("training.vectors_dependency={here}/data/splits/test.parquet", "must never flow into"),
        ("training.vectors_dependency=alias/splits/test.parquet", "must never flow into"),
        ("training.vectors_dependency=..", "must never flow into"),
        (
            "training.vectors_dependency=data/corpus/corpus.txt",
            "only split-corpus reads the corpus",
        ),
        ("training.vectors_dependency=.dvc/cache/files", "no stage reads DVC's copies"),
        ("corpus.split.lists_dependency=data/splits/test.parquet", "must never flow into"),
    ],
)
def test_a_stage_refuses_before_it_starts(tmp_path: Path, override: str, told: str):
    project = lay_out(tmp_path / "project")
    shutil.copytree(ROOT / "conf", project / "conf")
    (project / "src").symlink_to(ROOT / "src")
    (project / "alias").symlink_to("data")
    stage = "split_corpus" if override.startswith("corpus") else "train"
    done = subprocess.run(
        [sys.executable, "-m", f"neural_ngram.stages.{stage}", override.format(here=project)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": "src", "DVC_ROOT": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert told in line
    assert not [*(project / "artifacts/model").iterdir()]
