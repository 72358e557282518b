"""What a user can get wrong ends in one clear line, a non-zero exit and no half-written output."""

import json
import shutil
from pathlib import Path

import pytest

from neural_ngram.pipeline.frame import _told

SMALL = ("training.max_steps=30", "training.evaluate_every=15", "tokenizer.vocabulary_size=300")


@pytest.fixture(scope="module")
def unchanged(copied_project):
    """A project in which nothing has run, for tests after which that is still so."""
    project = copied_project("unchanged")
    yield project
    done = project.run("git", "status", "--porcelain", "--untracked-files=no")
    assert (done.returncode, done.stdout) == (0, "")
    assert not (project.folder / "data/splits").exists()


def assert_refused(done, stage: str, *told: str) -> None:
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"{stage}: error: ")
    for words in told:
        assert words in line
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no corpus at"),
        (b"", "contains no text"),
        (b"only one document\n", "partition is empty"),
        (b"aaaa\n" * 50, "partition is empty"),
        (b"first\nsecond\nthi\xffrd\n", "line 3, byte offset 16"),
    ],
)
def test_a_corpus_that_cannot_be_split_is_refused(project, content: bytes | None, told: str):
    if content is not None:
        (project.folder / "corpus.txt").write_bytes(content)
    done = project.stage("split_corpus", "corpus.path=corpus.txt")
    assert_refused(done, "split-corpus", told, "corpus" if content is None else "")
    assert not (project.folder / "data/splits").exists()


@pytest.mark.promise("reliability")
def test_a_corpus_that_memory_cannot_hold_is_told_without_advice_on_training(project):
    with (project.folder / "big.txt").open("wb") as sparse:
        sparse.truncate(2**40)
    limited = (
        "ulimit -v 67108864; exec python -m neural_ngram.stages.split_corpus corpus.path=big.txt"
    )
    done = project.run("sh", "-c", limited)
    told = (
        "big.txt has 1,099,511,627,776 bytes, more than memory can hold; set corpus.path to a part"
    )
    assert_refused(done, "split-corpus", told)
    assert not (project.folder / "data/splits").exists()


@pytest.mark.parametrize("stage", ["split-corpus", "learn-bpe", "build-windows", "train"])
def test_advice_on_memory_names_what_the_stage_needs_it_for(
    monkeypatch: pytest.MonkeyPatch, stage: str
):
    monkeypatch.setattr("neural_ngram.pipeline.frame._label", lambda: stage)
    told = _told(MemoryError())
    assert ("batch_size" in told) == (stage == "train")
    assert ("corpus.path" in told) == (stage != "train")


@pytest.mark.promise("reliability")
def test_a_gigantic_vocabulary_is_learned_as_far_as_the_text_goes(pipeline, tmp_path: Path):
    project = copy_of(pipeline, tmp_path)
    shutil.rmtree(project.folder / "artifacts/tokenizer")
    done = project.stage("learn_bpe", "tokenizer.vocabulary_size=1000000000")
    assert done.returncode == 0, done.stderr
    assert "merges fewer than tokenizer.vocabulary_size=1000000000 asked for" in done.stdout


@pytest.mark.promise("reliability")
def test_a_test_partition_that_does_not_exist_is_not_unsealed(project):
    whole = ("corpus.split.method=position", "corpus.split.train=0.9", "corpus.unit=corpus")
    done = project.stage("split_corpus", *whole)
    assert done.returncode == 0, done.stderr
    assert "no test partition: train and validation use all of the text" in done.stdout
    report = json.loads((project.folder / "artifacts/split/report.json").read_text())
    assert (report["test_partition"], report["documents"]["test"]) == ("none", 0)
    unsealed = ("evaluation.unseal_test=true", "evaluation.test_documents=data/splits/test.parquet")
    refused = project.stage("evaluate", *whole, *unsealed)
    assert_refused(refused, "evaluate", "corpus.split.method=position leaves no test partition")


def test_a_missing_corpus_is_told_by_dvc(project):
    done = project.run("dvc", "exp", "run", "-S", "corpus.path=nowhere.txt")
    assert done.returncode != 0
    assert "nowhere.txt" in done.stderr


def test_a_preset_without_an_address_asks_for_a_path(unchanged):
    done = unchanged.stage("split_corpus", "corpus.path=null")
    assert_refused(done, "split-corpus", "set corpus.path")


def test_a_single_repeated_character_is_nothing_to_learn(project):
    lines = "".join("a" * n + "\n" for n in range(1, 60))
    (project.folder / "corpus.txt").write_text(lines)
    assert project.stage("split_corpus", "corpus.path=corpus.txt").returncode == 0
    done = project.stage("learn_bpe")
    assert_refused(done, "learn-bpe", "fewer than two distinct characters")
    assert not (project.folder / "artifacts/tokenizer").exists()


def test_documents_shorter_than_the_context_are_refused(pipeline, tmp_path: Path):
    project = copy_of(pipeline, tmp_path)
    shutil.rmtree(project.folder / "data/windows")
    long = ("windows.context_length=5000", "windows.padding=none")
    assert_refused(project.stage("build_windows", *long), "build-windows", "context of 5000 tokens")
    assert not (project.folder / "data/windows").exists()


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("windows.context_length=0", "windows.context_length is 0, but must be at least 1"),
        ("model.hidden_width=-4", "model.hidden_width is -4, but must be at least 1"),
        ("optimizer.learning_rate=abc", "optimizer.learning_rate"),
    ],
)
def test_a_bad_setting_is_refused_by_name(unchanged, override: str, told: str):
    assert_refused(unchanged.stage("check_configuration", override), "check-configuration", told)


def test_a_misspelt_key_is_refused_by_name(unchanged):
    done = unchanged.stage("check_configuration", "optimizer.learnin_rate=1")
    assert_refused(done, "check-configuration", "did you mean optimizer.learning_rate?")


@pytest.mark.parametrize("overrides", [["model=linear"], ["model=linear", "model.hidden_width=5"]])
def test_a_preset_given_to_a_single_stage_is_refused(unchanged, overrides: list[str]):
    done = unchanged.stage("train", *overrides)
    assert_refused(done, "train", "run `neural-ngram compose model=linear` first")


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("training.max_steps=-3", "training.max_steps is -3, but must be at least 1"),
        ("corpus.split.train=0.95", "corpus.split.train + corpus.split.validation is 1.05"),
        ("generation.prompt=1e3", "generation.prompt is 1000.0, but must be text"),
        ("corpus.name=${oc.env:HOME}", "corpus.name is ${oc.env:HOME}, but a setting"),
    ],
)
def test_what_is_out_of_range_never_reaches_params(unchanged, override: str, told: str):
    before = (unchanged.folder / "params.yaml").read_bytes()
    done = unchanged.run("dvc", "exp", "run", "-S", override)
    assert done.returncode != 0
    assert "Running stage" not in done.stdout
    assert done.stderr.splitlines()[0].count(told) == 1
    assert (unchanged.folder / "params.yaml").read_bytes() == before


def test_no_bos_and_no_prompt_is_refused_before_anything_runs(unchanged):
    words = ("windows=complete", "tokenizer.markers=none")
    done = unchanged.run("neural-ngram", "run", *(word for each in words for word in ("-S", each)))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "generation.prompt is ''" in line
    assert "give a longer generation.prompt" in line


@pytest.mark.promise("reliability")
@pytest.mark.parametrize(
    "text",
    ["Ночью", "At night, she", "it's", "[1, 2]", "1e3", "true", "null", " a ", "back\\slash"],
)
def test_text_arrives_as_it_is_typed(pipeline, tmp_path: Path, text: str):
    project = copy_of(pipeline, tmp_path)
    samples = project.folder / "artifacts/generation/samples.json"
    samples.unlink()
    done = project.stage("generate", f"generation.prompt={text}")
    assert done.returncode == 0, done.stderr
    assert json.loads(samples.read_text())["prompt"] == text


def test_text_arrives_through_dvc_as_it_is_typed(project):
    settings = (*SMALL, "generation.prompt=It's 1e3, [she] said")
    words = [word for setting in settings for word in ("-S", setting)]
    done = project.run("neural-ngram", "run", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    samples = json.loads((project.folder / "artifacts/generation/samples.json").read_text())
    assert samples["prompt"] == "It's 1e3, [she] said"


@pytest.mark.parametrize("override", ["optimizer.learning_rate=abc", "model.widht=3"])
def test_dvc_refuses_a_bad_override_before_any_stage(unchanged, override: str):
    done = unchanged.run("dvc", "exp", "run", "-S", override)
    assert done.returncode != 0
    assert override.partition("=")[0] in done.stderr
    assert "Running stage" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_loss_that_is_not_finite_stops_training_and_names_the_step(pipeline, tmp_path: Path):
    project = copy_of(pipeline, tmp_path)
    shutil.rmtree(project.folder / "artifacts/model")
    done = project.stage("train", "optimizer.name=sgd", "optimizer.learning_rate=1e30")
    assert_refused(done, "train", "step", "lower optimizer.learning_rate")
    assert not (project.folder / "artifacts/model").exists()


def test_a_model_of_another_tokenizer_is_refused(pipeline, tmp_path: Path):
    project = copy_of(pipeline, tmp_path)
    assert project.stage("learn_bpe", "tokenizer.vocabulary_size=290").returncode == 0
    assert_refused(project.stage("generate"), "generate", "another tokenizer")


@pytest.mark.parametrize(
    ("stage", "damaged"),
    [
        ("learn_bpe", "data/splits/train.parquet"),
        ("build_windows", "artifacts/tokenizer/tokenizer.json"),
        ("train", "data/windows/train/tokens.npy"),
        ("evaluate", "artifacts/model/model.safetensors"),
    ],
)
def test_a_damaged_input_is_named(pipeline, tmp_path: Path, stage: str, damaged: str):
    project = copy_of(pipeline, tmp_path)
    file = project.folder / damaged
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[: len(content) // 2])
    assert_refused(project.stage(stage), stage.replace("_", "-"), damaged)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.promise("reliability")
def test_a_terminal_without_utf8_gets_code_points(pipeline, tmp_path: Path):
    project = copy_of(pipeline, tmp_path)
    project.environment |= ASCII
    parameters = project.folder / "params.yaml"
    text = parameters.read_text(encoding="utf-8").replace("prompt: ''", "prompt: é")
    parameters.unlink()
    parameters.write_text(text, encoding="utf-8")
    done = project.stage("generate")
    assert done.returncode == 0, done.stderr
    assert r"greedy: \xe9" in done.stdout


@pytest.mark.promise("reliability")
def test_an_argument_in_another_encoding_is_refused(project):
    project.environment |= ASCII
    done = project.stage("generate", "generation.prompt=é")
    assert_refused(done, "generate", "is not in the locale's encoding", "set LC_ALL=C.UTF-8")
    done = project.run("neural-ngram", "next", "é")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "is not in the locale's encoding" in line


def copy_of(pipeline, folder: Path):
    shutil.copytree(pipeline.folder, folder / "copy", symlinks=True)
    return type(pipeline)(folder / "copy")
