"""Where copies lie, as DVC and git themselves say: what is found must hold all that they name."""

import ast
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from dvc.fs import get_cloud_fs
from dvc.repo import Repo

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary.stores import dvc_stores, git_stores

LEVELS = ("system/config", "global/config", "project/.dvc/config", "project/.dvc/config.local")


@pytest.fixture
def levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DVC project, and folders for the configuration of the machine and of the user."""
    monkeypatch.setenv("DVC_SYSTEM_CONFIG_DIR", str(tmp_path / "system"))
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "global"))
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for file in (tmp_path / level for level in LEVELS):
        file.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / LEVELS[2]).write_text("[core]\n    no_scm = true\n")
    return tmp_path


def named_by_dvc(project: Path) -> set[str]:
    """The cache and the remotes on this machine, by DVC's own reading of its configuration."""
    with Repo(str(project)) as repository:
        remotes = [get_cloud_fs(repository.config, name=n) for n in repository.config["remote"]]
        places = [path for fs, _, path in remotes if fs.protocol == "local"]
        return {os.path.realpath(p) for p in (repository.cache.local_cache_dir, *places)}


def test_the_default_cache_is_found(levels: Path):
    assert set(dvc_stores([levels / "project"])) == {str(levels / "project/.dvc/cache")}
    assert named_by_dvc(levels / "project") <= set(dvc_stores([levels / "project"]))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("{root}/else/where", "else/where"),
        ("../else", None),
        ("~/own", "home/own"),
        ("file://{root}/by/url", "by/url"),
        ("local://{root}/by/url", "by/url"),
    ],
)
def test_a_cache_or_a_remote_of_any_level_and_spelling_is_found(
    levels: Path, level: str, address: str, place: str | None
):
    expected = levels / (place or Path(level).parent / "../else")
    text = address.format(root=levels)
    for section in ("['remote \"Near\"']\n    URL", "[Cache]\n    dir"):
        before = "[core]\n    no_scm = true\n"
        (levels / LEVELS[2]).write_text(before)
        (levels / level).write_text(f"{before}{section} = {text}\n")
        found = set(dvc_stores([levels / "project"]))
        assert {os.path.realpath(expected), *named_by_dvc(levels / "project")} <= found


def test_levels_that_are_overridden_keep_their_copies_closed(levels: Path):
    for number, level in enumerate(LEVELS):
        text = "[core]\n    no_scm = true\n" if level == LEVELS[2] else ""
        (levels / level).write_text(f"{text}[cache]\n    dir = {levels}/cache{number}\n")
    found = set(dvc_stores([levels / "project"]))
    assert named_by_dvc(levels / "project") == {str(levels / "cache3")}
    assert {str(levels / f"cache{number}") for number in range(4)} <= found


def test_remotes_elsewhere_close_nothing_here(levels: Path):
    (levels / LEVELS[2]).write_text(
        "[core]\n    no_scm = true\n['remote \"far\"']\n    url = s3://bucket/x\n"
        "['remote \"web\"']\n    url = https://example.org/x\n[studio]\n    url = x\n"
    )
    assert set(dvc_stores([levels / "project"])) == {str(levels / "project/.dvc/cache")}


def test_where_dvc_looks_without_its_variables_is_known(
    levels: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, variable in (("system", "XDG_CONFIG_DIRS"), ("global", "XDG_CONFIG_HOME")):
        monkeypatch.delenv(f"DVC_{name.upper()}_CONFIG_DIR")
        monkeypatch.setenv(variable, str(levels / name))
        (levels / name / "dvc").mkdir()
        (levels / name / "dvc/config").write_text(
            f"['remote \"{name}\"']\n    url = {levels}/{name}_copies\n"
        )
    named = named_by_dvc(levels / "project")
    assert {str(levels / "system_copies"), str(levels / "global_copies")} <= named
    assert named <= set(dvc_stores([levels / "project"]))


@pytest.mark.parametrize("content", [b"[cache\n", b"[cache]\ndir = \xff\xfe\n"])
def test_a_configuration_that_cannot_be_read_is_an_error(levels: Path, content: bytes):
    (levels / LEVELS[1]).write_bytes(content)
    with pytest.raises(BoundaryError, match=r"global/config cannot be read .*DVC keeps its copies"):
        list(dvc_stores([levels / "project"]))


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    command = ["git", *identity, "-c", "protocol.file.allow=always", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a")
    return folder


def named_by_git(folder: Path) -> set[str]:
    """Git's own folder of objects, and those that it says it borrows from."""
    common = git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    lines = git(folder, "count-objects", "-v").splitlines()
    places = [line.removeprefix("alternate: ") for line in lines if line.startswith("alternate: ")]
    plain = [ast.literal_eval(f"b{place}").decode() if '"' in place else place for place in places]
    return {os.path.realpath(place) for place in (f"{common}/objects", *plain)}


def plain(root: Path) -> Path:
    return repository(root / "main")


def subfolder(root: Path) -> Path:
    folder = repository(root / "main") / "below/deep"
    folder.mkdir(parents=True)
    return folder


def worktree(root: Path) -> Path:
    git(repository(root / "main"), "worktree", "add", "-q", "../tree")
    return root / "tree"


def submodule(root: Path) -> Path:
    repository(root / "inner")
    git(repository(root / "main"), "submodule", "add", "-q", "../inner", "part")
    return root / "main/part"


def separate(root: Path) -> Path:
    git(root, "init", "-q", "--separate-git-dir", str(root / "apart"), str(root / "main"))
    return root / "main"


def borrowing(root: Path) -> Path:
    repository(root / "first")
    git(root, "clone", "-q", "--shared", "first", "second")
    git(root, "clone", "-q", "--shared", "second", "third")
    return root / "third"


def borrowing_by_unusual_name(root: Path) -> Path:
    source = repository(root / 'o"d é')
    made = repository(root / "main")
    quoted = str(source / ".git/objects").replace('"', '\\"').replace("é", "\\303\\251")
    (made / ".git/objects/info/alternates").write_text(f'# a remark\n"{quoted}"\n')
    return made


@pytest.mark.parametrize(
    "make",
    [plain, subfolder, worktree, submodule, separate, borrowing, borrowing_by_unusual_name],
)
def test_the_objects_that_git_names_are_found(tmp_path: Path, make: Callable[[Path], Path]):
    folder = make(tmp_path)
    named = named_by_git(folder)
    assert all(Path(place).is_dir() for place in named)
    assert named <= set(git_stores([folder]))


def test_the_super_project_of_a_submodule_is_found(tmp_path: Path):
    found = set(git_stores([submodule(tmp_path)]))
    assert str(tmp_path / "main/.git/objects") in found


def test_objects_that_the_environment_names_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(other / ".git/objects"))
    assert named_by_git(folder) <= set(git_stores([folder]))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert str(other / ".git/objects") in set(git_stores([tmp_path]))


def test_repositories_that_borrow_from_each_other_end(tmp_path: Path):
    one, other = repository(tmp_path / "one"), repository(tmp_path / "other")
    for here, there in ((one, other), (other, one)):
        (here / ".git/objects/info/alternates").write_text(f"{there}/.git/objects\n")
    assert {f"{folder}/.git/objects" for folder in (one, other)} <= set(git_stores([one]))
