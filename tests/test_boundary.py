"""The parts of the boundary, without a stage: what is declared, what is closed, what is counted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.repo import Repo
from hydra.core.override_parser.overrides_parser import OverridesParser

from neural_ngram.errors import BoundaryError
from neural_ngram.pipeline.boundary import landlock
from neural_ngram.pipeline.boundary.declaration import (
    Declaration,
    declaration,
    lookup,
    parameters_of,
)
from neural_ngram.pipeline.boundary.rules import rules
from neural_ngram.pipeline.overrides import for_hydra

ROOT = Path(__file__).parents[1]
PARAMETERS = {"corpus": {"path": "data/corpus/own.txt", "dependency": "data/corpus/own.txt"}}


def land(root: Path, stage: str = "train", *, reads=(), writes=(), other: Path | None = None):
    declared = Declaration(stage, tuple(reads), tuple(writes))
    return rules(declared, (root, other or root), PARAMETERS)


def test_the_quick_reading_of_dvc_yaml_agrees_with_dvc():
    parameters = parameters_of(ROOT, [])
    for stage in Repo(str(ROOT)).index.stages:
        found = declaration(ROOT, stage.name, parameters)
        deps = {dep.def_path for dep in stage.deps if dep.def_path != "params.yaml"}
        assert set(found.reads) == deps
        assert set(found.writes) == {out.def_path for out in stage.outs}


def test_overrides_reach_the_declaration():
    parameters = parameters_of(ROOT, ["corpus.dependency=mine.txt", "+new.key=3"])
    assert "mine.txt" in declaration(ROOT, "split-corpus", parameters).reads
    assert parameters["new"] == {"key": 3}


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("boundary.mode", ["off", "Off", "audit", "'off'", '"off"', "null"]),
        ("corpus.dependency", ["off", "no", "123", "1:30", "2020-01-01", "a #b", "a: b", "'1'"]),
    ],
)
def test_a_text_is_read_as_hydra_reads_it(name: str, texts: list[str]):
    for text in texts:
        [override] = for_hydra([f"{name}={text}"])
        read = OverridesParser.create().parse_override(override).value()
        assert lookup(parameters_of(ROOT, [f"{name}={text}"]), name) == read, text


@pytest.mark.parametrize(("text", "expected"), [("off", False), ("on", True), ("true", True)])
def test_a_switch_is_still_a_switch(text: str, expected: bool):
    given = parameters_of(ROOT, [f"training.determinism={text}"])
    assert lookup(given, "training.determinism") is expected


def test_the_sandbox_is_off_when_the_command_line_says_so():
    code = f"""if True:
        from neural_ngram.pipeline.boundary import declaration, sandbox
        given = declaration.parameters_of(sandbox.Path({str(ROOT)!r}), ["boundary.mode=off"])
        print(sandbox.enter("train", given).kind)"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"off\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "declares no stages"),
        ("stages: {}", "declares no plain stage 'train'"),
        ("stages: {train: {foreach: [1], do: {cmd: a}}}", "foreach and matrix are not read"),
        ("stages: {train: {cmd: a, deps: ['${no.such}']}}", "asks for ${no.such}"),
    ],
)
def test_what_dvc_yaml_does_not_declare_is_an_error(tmp_path: Path, text: str | None, told: str):
    if text is not None:
        (tmp_path / "dvc.yaml").write_text(text)
    with pytest.raises(BoundaryError, match="dvc") as caught:
        declaration(tmp_path, "train", {})
    assert told in str(caught.value)


def test_a_stage_opens_its_inputs_and_the_folders_of_its_outputs(tmp_path: Path):
    found = land(tmp_path, reads=["data/a/in.csv"], writes=["artifacts/model", "data/b/out.csv"])
    for name in ("data/a/in.csv", "artifacts/model/.x.tmp", "data/b/other.csv", "src/code.py"):
        assert found.rule_against(str(tmp_path / name)) is None
    for name in ("data/a/other.csv", "artifacts/tokenizer/x", ".dvc/cache/files/md5/ab/c", "data"):
        assert found.rule_against(str(tmp_path / name))
    assert found.rule_against("/usr/lib/python3/x.py") is None


def test_only_the_splitter_reads_the_corpus_and_what_was_fetched(tmp_path: Path):
    for name in ("data/corpus/own.txt", "data/raw/names/names.txt"):
        assert land(tmp_path, "train").rule_against(str(tmp_path / name))
        assert land(tmp_path, "split-corpus").rule_against(str(tmp_path / name)) is None


def corpus_at(path: object) -> dict:
    return {"corpus": {"path": str(path), "dependency": str(path)}}


def test_a_corpus_outside_the_project_is_closed_too(tmp_path: Path):
    root, corpus = tmp_path / "project", tmp_path / "corpus"
    outside = rules(Declaration("train", (), ()), (root, root), corpus_at(corpus))
    assert outside.rule_against(str(corpus / "a.txt"))


@pytest.mark.parametrize("stage", ["train", "split-corpus"])
@pytest.mark.parametrize("name", ["..", ".", "../..", "data/..", "/", "link"])
def test_a_corpus_that_holds_the_project_is_refused(tmp_path: Path, stage: str, name: str):
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(BoundaryError, match=r"holds the project .* set corpus\.path to that"):
        rules(Declaration(stage, (), ()), (root, root), corpus_at(name))


def test_what_the_links_in_a_corpus_folder_point_to_is_closed_but_to_the_splitter(tmp_path: Path):
    root, away = tmp_path / "project", tmp_path / "away"
    cached = root / ".dvc/cache/files/md5/ab/c"
    for file in (away / "a.txt", away / "folder/b.txt", cached):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    below = root / "data/corpus/below"
    below.mkdir(parents=True)
    links = {"a.txt": away / "a.txt", "folder": away / "folder", "c.txt": cached, "up": root}
    for name, end in links.items():
        (below / name).symlink_to(end)
    for stage, closed in (("train", True), ("split-corpus", False)):
        found = rules(Declaration(stage, (), ()), (root, root), corpus_at("data/corpus"))
        for file in (away / "a.txt", away / "folder/b.txt", cached):
            assert bool(found.rule_against(str(file))) == closed, (stage, file)
        assert found.rule_against(str(root / "src/code.py")) is None


def test_a_corpus_by_its_file_address_is_closed_but_to_the_splitter(tmp_path: Path):
    file, root = tmp_path / "a corpus.txt", tmp_path / "project"
    parameters = {"corpus": {"path": None, "url": f"https://example.org/x {file.as_uri()}"}}
    for stage, closed in (("train", True), ("split-corpus", False)):
        found = rules(Declaration(stage, (), ()), (root, root), parameters)
        assert bool(found.rule_against(str(file))) == closed


def test_the_copies_of_a_corpus_in_a_repository_of_its_own_are_closed(tmp_path: Path):
    root, other = tmp_path / "project", tmp_path / "other"
    for name in (".git/objects/ab", ".dvc/cache/files", "texts"):
        (other / name).mkdir(parents=True)
    (other / "texts/a.txt").write_text("x")
    for stage in ("train", "split-corpus"):
        found = rules(Declaration(stage, (), ()), (root, root), corpus_at(other / "texts"))
        assert "git's copies" in found.rule_against(str(other / ".git/objects/ab/c"))
        assert "DVC's copies" in found.rule_against(str(other / ".dvc/cache/files/c"))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("data/corpus/own.txt", "only split-corpus reads the corpus"),
        ("data/raw/names/a.txt", "only split-corpus reads the corpus"),
        (".dvc/cache/files/md5/ab/c", "no stage reads DVC's copies"),
        (".dvc/tmp/exps/other/data/a.csv", "no stage reads the folders of other experiments"),
        (".git/objects/ab/c", "no stage reads git's copies"),
        ("{main}/data/splits/test.parquet", "reads only what it declares"),
    ],
)
def test_no_declaration_opens_what_is_closed_to_every_stage(tmp_path: Path, name: str, rule: str):
    main, here = tmp_path / "main", tmp_path / "main/.dvc/tmp/exps/own"
    (main / ".git").mkdir(parents=True)
    for root in (main, here):
        declared = name.format(main=main) if root == here else name
        if declared != name or "{" not in name:
            with pytest.raises(BoundaryError, match=rf"train would read .*{rule}"):
                land(root, reads=[declared], other=main)


def test_in_a_temporary_run_the_main_checkout_is_closed_and_the_own_folder_open(tmp_path: Path):
    here = tmp_path / ".dvc/tmp/exps/own"
    found = land(here, reads=["data/a.csv"], other=tmp_path)
    assert found.rule_against(str(here / "data/a.csv")) is None
    assert found.rule_against(str(here / "src/code.py")) is None
    for name in ("data/a.csv", "artifacts/x", ".dvc/tmp/exps/other/data/a.csv", ".dvc/cache/x"):
        assert found.rule_against(str(tmp_path / name))


def test_a_cache_elsewhere_and_a_local_remote_are_closed(tmp_path: Path):
    root = tmp_path / "project"
    (root / ".dvc").mkdir(parents=True)
    (root / ".dvc/config").write_text(
        "[core]\n    remote = near\n['remote \"near\"']\n    url = ../../remote\n"
        "['remote \"far\"']\n    url = s3://bucket/x\n"
    )
    (root / ".dvc/config.local").write_text(
        f"[cache]\n    dir = {tmp_path}/cache\n    type = copy\n"
    )
    for name in ("cache/files/md5/ab/c", "remote/files/md5/ab/c"):
        assert "copies" in land(root).rule_against(str(tmp_path / name))


def test_links_are_followed_into_the_cache_and_nowhere_else(tmp_path: Path):
    (tmp_path / "data/in").mkdir(parents=True)
    cached, closed = tmp_path / ".dvc/cache/files/md5/ab/c", tmp_path / "data/closed.csv"
    cached.parent.mkdir(parents=True)
    for file in (cached, closed):
        file.write_text("x")
    (tmp_path / "data/in/cached.csv").symlink_to(cached)
    (tmp_path / "data/in/closed.csv").symlink_to(closed)
    (tmp_path / "data/single.csv").symlink_to(closed)
    found = land(tmp_path, reads=["data/in", "data/single.csv"])
    assert found.rule_against(str(tmp_path / "data/in/cached.csv")) is None
    assert found.rule_against(str(tmp_path / "data/in/closed.csv"))
    assert found.rule_against(str(tmp_path / "data/single.csv"))


@pytest.mark.parametrize("name", ["artifacts/table.csv", "data/table.csv", "table.csv"])
def test_an_output_without_a_folder_of_its_own_is_refused(tmp_path: Path, name: str):
    with pytest.raises(BoundaryError, match=r"give it a folder of its own"):
        land(tmp_path, writes=[name])


def test_the_pieces_hold_all_that_is_open_and_nothing_closed(tmp_path: Path):
    for name in ("data/open/a", "data/open/b", "data/shut/a", "src/code", "shut/inner/a", "new"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "data/shut/a")
    shut = [str(tmp_path / name) for name in ("data", "shut", "missing")]
    free = [str(tmp_path / name) for name in ("data/open/a", "shut/inner")]
    found = [Path(piece) for piece in landlock.pieces(shut, free)]
    own = {str(p.relative_to(tmp_path)) for p in found if p.is_relative_to(tmp_path)}
    assert own == {"data/open/a", "shut/inner", "src", "new"}
    assert Path("/usr") in found


def test_only_folders_above_a_closed_place_are_listed_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("data/open/a", "data/shut/a", "src/package/code", "artifacts/deep/er/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    listed, iterdir = list[Path](), Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: listed.append(path) or iterdir(path))
    shut = [str(tmp_path / name) for name in ("data", "artifacts")]
    rules = list(landlock.pieces(shut, [str(tmp_path / "data/open")]))
    assert sorted(listed) == sorted([*tmp_path.parents, tmp_path, tmp_path / "data"])
    assert len(rules) == len(set(rules)) <= sum(len(list(iterdir(path))) for path in listed)


ENTER = """
from pathlib import Path
from neural_ngram.pipeline.boundary import declaration, sandbox
sandbox.enter("train", declaration.parameters_of(Path.cwd(), []))
"""


@pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")
@pytest.mark.parametrize(
    ("before", "environment", "told"),
    [
        (
            "from threading import *; Thread(target=Event().wait, daemon=True).start()",
            {},
            "2 threads are already running when train closes its files",
        ),
        ("", {"MLFLOW_TRACKING_URI": "sqlite:///own.db"}, "move it into a folder of its own"),
    ],
)
def test_a_sandbox_that_would_not_hold_or_would_hinder_is_refused(
    before: str, environment: dict[str, str], told: str
):
    done = subprocess.run(
        [sys.executable, "-c", before + ENTER],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told in done.stderr


def test_every_test_that_the_page_names_exists():
    named = set(
        re.findall(r"`(?:stages/)?(test_\w+)(?:\.py)?`", (ROOT / "docs/boundary.md").read_text())
    )
    files = list((ROOT / "tests").rglob("test_*.py"))
    known = {file.stem for file in files}
    known |= {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert len(named) > 15
    assert named <= known


@pytest.mark.parametrize("text", ["@home", "*bold*", "%d", "Note: he said: yes", "{"])
def test_an_override_that_is_no_yaml_stands_for_itself(text: str):
    parameters = parameters_of(ROOT, [f"generation.prompt={text}"])
    assert parameters["generation"]["prompt"] == text
