"""Test documents are sealed; unsealing them scores them, shows in the graph and is on record."""

import json
import re
import shutil
import traceback
from pathlib import Path

import pandas as pd
import pytest

from neural_ngram.artifacts import write_table
from neural_ngram.errors import TokenizerError
from neural_ngram.evaluation.unsealed import read_test
from neural_ngram.pipeline.boundary.declaration import locked
from neural_ngram.pipeline.boundary.graph import prove
from neural_ngram.pipeline.ledger import read
from neural_ngram.pipeline.project import TOKENIZER
from neural_ngram.settings import EvaluationSettings, Settings, TokenizerSettings
from neural_ngram.tokens import tokenizer as tokenizers

UNSEALED = "evaluation.unseal_test=true"
SMALL = ("training.max_steps=30", "training.evaluate_every=15", "tokenizer.vocabulary_size=300")


def git(project, *arguments: str) -> str:
    given = ("-c", "user.name=t", "-c", "user.email=t@example.org", *arguments)
    done = project.run("git", *given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cloned(project, folder: Path):
    """A clone with the same DVC cache, as a colleague or a second checkout has it."""
    git(project, "clone", "-q", str(project.folder), str(folder))
    copy = type(project)(folder)
    copy.dvc("cache", "dir", "--local", str(project.folder / ".dvc/cache"))
    return copy


def on_test(project) -> dict | str:
    return json.loads((project.folder / "artifacts/test/figures.json").read_text())["test"]


def shown(project) -> dict:
    """The figures on test that `dvc metrics show` gives, none while it is sealed."""
    found = json.loads(project.dvc("metrics", "show", "--json"))
    files = found[""]["data"]
    tests = [content["data"]["test"] for content in files.values() if "test" in content["data"]]
    return {k: v for part in tests if isinstance(part, dict) for k, v in part.items()}


def lines(project) -> list[dict]:
    return read(project.folder / "ledger.jsonl")


def is_recorded(project) -> bool:
    """Whether what is shown of test has its line; true as well when nothing is shown."""
    found = shown(project)
    return not found or found["loss_nats"] in [line["loss_nats"] for line in lines(project)]


def reads_test(project) -> bool:
    return any("data/splits/test.parquet" in ran.reads for ran in locked(project.folder))


@pytest.fixture(scope="module")
def sealed(pipeline, tmp_path_factory: pytest.TempPathFactory):
    """A project whose sealed run is committed."""
    folder = tmp_path_factory.mktemp("sealed") / "copy"
    shutil.copytree(pipeline.folder, folder, symlinks=True)
    made = type(pipeline)(folder)
    made.experiment()
    git(made, "add", "-A")
    git(made, "commit", "-qm", "sealed")
    return made


@pytest.fixture(scope="module")
def unsealed(sealed, tmp_path_factory: pytest.TempPathFactory):
    """The same, and test was evaluated once, which is not committed."""
    folder = tmp_path_factory.mktemp("unsealed") / "copy"
    shutil.copytree(sealed.folder, folder, symlinks=True)
    made = type(sealed)(folder)
    made.first_output = made.experiment(UNSEALED)
    return made


@pytest.fixture
def project(unsealed, tmp_path: Path):
    """A copy of that."""
    shutil.copytree(unsealed.folder, tmp_path / "copy", symlinks=True)
    return type(unsealed)(tmp_path / "copy")


@pytest.mark.promise("boundary")
def test_test_is_evaluated_and_recorded_once_and_sealing_takes_the_figure_away(sealed, project):
    assert on_test(sealed) == "sealed"
    assert shown(sealed) == {}
    assert not reads_test(sealed)
    assert lines(sealed) == []
    assert "up to date" in project.dvc("repro")

    found = on_test(project)
    (line,) = lines(project)
    assert line["loss_nats"] == found["loss_nats"] == shown(project)["loss_nats"]
    assert line["evaluation"] == found["evaluation"] == 1
    assert line["commit"] == git(project, "rev-parse", "HEAD").strip()
    figures = json.loads((project.folder / "artifacts/evaluation/figures.json").read_text())
    assert "test" not in figures
    own = {"evaluation", "kneser_ney", "interpolated"}
    assert found.keys() == figures["validation"].keys() - {"calibration_error"} | own
    weights = [part["interpolated"]["tuned"]["model_weight"] for part in (figures, found)]
    assert weights[0] == weights[1]
    assert reads_test(project)
    prove(locked(project.folder))
    assert project.run("neural-ngram", "boundary").returncode == 0

    project.dvc("repro", "--force", "--single-item", "evaluate-test")
    assert lines(project) == [line]
    project.experiment()
    assert on_test(project) == "sealed"
    assert (project.folder / "dvc.lock").read_bytes() == (sealed.folder / "dvc.lock").read_bytes()
    assert lines(project) == [line]


def test_unsealing_runs_one_stage_and_says_which_evaluation_it_is(unsealed):
    assert unsealed.first_output.count("Running stage") == 1
    assert "test is unsealed: evaluation no. 1 on this test split" in unsealed.first_output


@pytest.mark.promise("boundary")
def test_another_clone_with_the_same_cache_records_its_own_evaluation(project, tmp_path: Path):
    clone = cloned(project, tmp_path / "clone")
    assert is_recorded(clone)
    printed = clone.experiment(UNSEALED)
    assert "Running stage 'evaluate-test'" in printed
    assert "Running stage 'train'" not in printed  # that did come from the shared cache
    assert shown(clone)
    assert is_recorded(clone)
    assert len(lines(clone)) == 1


@pytest.mark.promise("boundary")
def test_a_committed_evaluation_reaches_a_clone_with_its_line(project, tmp_path: Path):
    git(project, "commit", "-qam", "unsealed")
    clone = cloned(project, tmp_path / "clone")
    clone.dvc("checkout")
    assert shown(clone) == shown(project) != {}
    assert is_recorded(clone)
    assert clone.run("neural-ngram", "boundary").returncode == 0


@pytest.mark.promise("boundary")
def test_a_stash_takes_the_figure_and_its_line_away_and_brings_both_back(project):
    found = shown(project)
    git(project, "stash")
    assert shown(project) == {}
    assert lines(project) == []
    project.dvc("checkout")
    project.dvc("repro")
    assert shown(project) == {}
    git(project, "stash", "pop")
    assert shown(project) == found
    assert is_recorded(project)


@pytest.mark.promise("boundary")
def test_branches_carry_the_figure_and_its_line_together(project):
    start = git(project, "branch", "--show-current").strip()
    git(project, "switch", "-qc", "unsealed")
    git(project, "commit", "-qam", "unsealed")
    git(project, "switch", "-q", start)
    assert shown(project) == {}
    assert lines(project) == []
    project.dvc("checkout")
    git(project, "switch", "-q", "unsealed")
    assert shown(project)
    assert is_recorded(project)
    git(project, "switch", "-q", start)
    printed = project.experiment(UNSEALED)
    assert "Running stage 'evaluate-test'" in printed
    assert is_recorded(project)


@pytest.mark.promise("boundary")
def test_a_remote_hands_out_no_figure_on_test(project, tmp_path: Path):
    project.dvc("remote", "add", "--local", "-d", "folder", str(tmp_path / "remote"))
    project.dvc("push", "--run-cache")
    loss = repr(shown(project)["loss_nats"])
    files = [path for path in (tmp_path / "remote").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if loss.encode() in path.read_bytes()]
    git(project, "clone", "-q", str(project.folder), str(tmp_path / "clone"))
    clone = type(project)(tmp_path / "clone")
    clone.dvc("remote", "add", "--local", "-d", "folder", str(tmp_path / "remote"))
    clone.dvc("pull", "--run-cache")
    assert shown(clone) == {}
    printed = clone.experiment(UNSEALED)
    assert "Running stage 'train'" not in printed
    assert len(lines(clone)) == 1
    assert is_recorded(clone)


@pytest.mark.promise("boundary")
def test_an_experiment_is_applied_with_its_line(project):
    (name,) = project.dvc("exp", "list", "--name-only").split()[-1:]
    project.experiment()
    git(project, "checkout", "-q", "-f", ".")
    assert lines(project) == []
    project.dvc("exp", "apply", name)
    assert shown(project)
    assert is_recorded(project)


@pytest.mark.promise("boundary")
def test_a_temporary_experiment_is_recorded_at_home_and_in_its_commit(sealed, tmp_path: Path):
    shutil.copytree(sealed.folder, tmp_path / "copy", symlinks=True)
    project = type(sealed)(tmp_path / "copy")
    printed = project.experiment(UNSEALED, options=("--temp", "--name", "apart"))
    assert "evaluation no. 1 on this test split" in printed
    assert shown(project) == {}
    assert len(lines(project)) == 1
    git(project, "checkout", "-q", "-f", ".")
    project.dvc("exp", "apply", "apart")
    assert shown(project)
    assert is_recorded(project)
    assert len(lines(project)) == 1


@pytest.mark.promise("boundary")
def test_a_figure_without_its_line_is_refused_wherever_it_is_read(project):
    ledger = project.folder / "ledger.jsonl"
    ledger.write_text("")
    (project.folder / "runs/ledger.jsonl").unlink()
    for command in (("boundary",), ("report",), ("export", "safetensors", "exported")):
        done = project.run("neural-ngram", *command)
        assert done.returncode == 1
        assert "no line of the ledger records" in done.stderr
    assert not (project.folder / "exported").exists()
    project.dvc("repro", "--force", "--single-item", "evaluate-test")
    assert project.run("neural-ngram", "boundary").returncode == 0
    assert project.run("neural-ngram", "report").returncode == 0


def test_a_figure_that_was_edited_is_refused(project):
    for name in ("metrics.json", "figures.json"):
        path = project.folder / "artifacts/test" / name
        old = path.read_text()
        path.write_text(re.sub(r'("loss_nats": )[\d.]+', r"\g<1>0.25", old))
        done = project.run("neural-ngram", "boundary")
        assert done.returncode == 1
        assert f"{name} has a test loss of 0.25 nats" in done.stderr
        path.write_text(old)


@pytest.mark.promise("boundary")
def test_a_lock_file_of_an_evaluation_whose_figures_are_gone_is_refused(project):
    for name in ("artifacts/test", "ledger.jsonl", "params.yaml"):
        git(project, "checkout", "-q", "HEAD", name)
    done = project.run("neural-ngram", "boundary")
    assert done.returncode == 1
    assert "dvc.lock records a test evaluation whose figures are not those of" in done.stderr


@pytest.mark.promise("boundary")
def test_an_evaluation_in_a_worktree_names_its_commit(sealed, tmp_path: Path):
    git(sealed, "worktree", "add", "-q", "-b", "tree", str(tmp_path / "tree"))
    tree = type(sealed)(tmp_path / "tree")
    tree.dvc("cache", "dir", "--local", str(sealed.folder / ".dvc/cache"))
    tree.dvc("checkout")
    done = tree.run("neural-ngram", "compose", *SMALL, UNSEALED)
    assert done.returncode == 0, done.stderr
    tree.dvc("repro")
    (line,) = lines(tree)
    assert line["commit"] == git(tree, "rev-parse", "HEAD").strip()


@pytest.mark.promise("boundary")
def test_a_tampered_ledger_stops_the_next_test_evaluation(project):
    ledger = project.folder / "ledger.jsonl"
    ledger.write_text(re.sub(r'"loss_nats": [\d.]+', '"loss_nats": 0.1', ledger.read_text()))
    overrides = (UNSEALED, "evaluation.test_documents=data/splits/test.parquet")
    done = project.stage("evaluate_test", *overrides)
    assert done.returncode == 1
    assert "ledger.jsonl line 1 was changed after it was written" in done.stderr


@pytest.mark.promise("boundary")
def test_unsealing_past_the_graph_is_refused(sealed):
    done = sealed.stage("evaluate_test", UNSEALED)
    assert done.returncode == 1
    assert "dvc exp run -S evaluation.unseal_test=true" in done.stderr


@pytest.mark.promise("reliability")
def test_a_failed_run_leaves_no_old_figure_beside_new_settings(project):
    found = json.loads(project.dvc("metrics", "show", "--json"))
    assert shown(project)
    failed = project.run(
        "dvc",
        "exp",
        "run",
        "-S",
        "training.patience=1",
        "-S",
        "training.max_steps=2",
        "-S",
        "training.evaluate_every=1",
        "-S",
        "optimizer.learning_rate=1e30",
    )
    assert failed.returncode != 0, failed.stdout
    files = json.loads(project.dvc("metrics", "show", "--json"))[""]["data"]
    assert {name: file["data"] for name, file in files.items()} == {
        "artifacts/evaluation/metrics.json": {"unfinished": "train"},
        "artifacts/test/metrics.json": {"unfinished": "train"},
    }
    git(project, "checkout", "-q", "-f", "HEAD", "params.yaml")
    project.experiment(UNSEALED)
    assert json.loads(project.dvc("metrics", "show", "--json")) == found


def test_a_word_that_train_lacks_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    asked = Settings(
        tokenizer=TokenizerSettings(kind="word"),
        evaluation=EvaluationSettings(test_documents="test.parquet", unseal_test=True),
    )
    tokenizers.save(tokenizers.learn(["seen words", "seen again"], asked.tokenizer), TOKENIZER)
    write_table(Path("test.parquet"), pd.DataFrame({"text": ["a secretword"]}))
    with pytest.raises(TokenizerError, match="sealed text is not shown") as caught:
        read_test(asked)
    assert "secretword" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.promise("boundary")
def test_no_output_or_log_holds_a_sentence_of_the_test_documents(project):
    texts = project.run(
        "python",
        "-c",
        "import pandas as pd; "
        "print(*pd.read_parquet('data/splits/test.parquet')['text'], sep='\\n')",
    ).stdout.splitlines()
    pieces = {text[start : start + 40] for text in texts for start in range(0, len(text) - 40, 20)}
    assert len(pieces) > 100
    shown = [project.first_output] if hasattr(project, "first_output") else []
    for folder in ("artifacts", "runs/artifacts"):
        files = [path for path in (project.folder / folder).rglob("*") if path.is_file()]
        shown += [path.read_bytes().decode("utf-8", "replace") for path in files]
    assert shown
    for text in shown:
        assert not [piece for piece in pieces if piece in text]
