"""The presets of published runs, stage by stage, beside what was published."""

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import fresh_model
from mlflow import MlflowClient

from neural_ngram.cli.main import main
from neural_ngram.settings import OptimizerSettings, TrainingSettings
from neural_ngram.tokens.windows import load
from neural_ngram.training.loop import train

NAMES = ("embedding", "gate", "up", "down", "output")
TRAINING = ("split_corpus", "learn_bpe", "build_windows", "train")


def read(project, name: str) -> dict:
    return json.loads((project.folder / "artifacts" / name).read_text())


@pytest.fixture(scope="module")
def chapter_23(run_preset, real_data):
    corpus = f"corpus.path={real_data('bilingual/corpus.json')}"
    return run_preset("ch23", corpus, stages=(*TRAINING, "generate"))


@pytest.fixture(scope="module")
def published(real_data) -> dict[str, str]:
    lines = real_data("bilingual/ch23_expected.txt").read_text().splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines)


def numbers(text: str) -> Iterator[float]:
    return (float(number) for number in re.findall(r"-?\d+\.\d+", text))


def six(values) -> list[float]:
    return [round(value, 6) + 0.0 for value in values]


def test_chapter_23_sizes(chapter_23, published):
    evidence = read(chapter_23, "training/evidence.json")
    shapes = evidence["parameters"]["shapes"]
    assert [shapes[name] for name in NAMES] == [[266, 4], [8, 8], [8, 8], [8, 8], [8, 266]]
    assert f"parameters:{evidence['parameters']['count']} " in published["config"]
    for name, windows in evidence["windows"].items():
        assert f"{name}_contexts:{windows} " in published["split"]


def test_chapter_23_probe(chapter_23, published):
    probe = read(chapter_23, "training/evidence.json")["probe"]
    assert str(probe["context"]) == published["probe_context"]
    embeddings = [value for row in probe["embeddings"] for value in row]
    assert six(embeddings) == list(numbers(published["probe_embeddings"]))
    assert six(probe["hidden"]) == list(numbers(published["probe_hidden"]))
    *logits, best = numbers(published["probe_logits"])
    assert six(probe["logits"]) == logits
    assert six([probe["argmax_logit"]]) == [best]
    assert f"argmax:{probe['argmax']} " in published["probe_logits"]


def test_chapter_23_gradients_and_losses(chapter_23, published):
    evidence = read(chapter_23, "training/evidence.json")
    norms = six(evidence["first_gradient_l1"][name] for name in NAMES)
    assert norms == list(numbers(published["first_gradient_l1"]))
    for step, losses in evidence["losses_nats"].items():
        expected = list(numbers(published[f"checkpoint[{step}]"]))
        assert six([losses["train"], losses["validation"]]) == expected
    improvement = [evidence["validation_improvement_nats"]]
    assert six(improvement) == list(numbers(published["validation_improvement"]))


def test_chapter_23_by_autograd_has_the_same_losses(chapter_23, published):
    parts = {
        name: load(chapter_23.folder / "data/windows" / name)[0] for name in ("train", "validation")
    }
    model = fresh_model(266, 2, seed=23, embedding_width=4, hidden_width=8)
    chosen = TrainingSettings(
        batch_size=64, max_steps=15, evaluate_every=8, seed=23, gradients="autograd"
    )
    rule = OptimizerSettings(learning_rate=0.01, weight_decay=0.01)
    record = train(model, parts, rule, chosen)
    assert [evaluation.step for evaluation in record.evaluations] == [0, 8, 15]
    for evaluation in record.evaluations:
        losses = [evaluation.train_loss_nats, evaluation.validation_loss_nats]
        assert six(losses) == list(numbers(published[f"checkpoint[{evaluation.step}]"]))


def test_chapter_23_continuation(chapter_23, published):
    samples = read(chapter_23, "generation/samples.json")
    greedy = samples["continuations"][0]
    assert published["generation"] == (
        f"prompt:{samples['prompt']} prompt_ids:{samples['prompt_ids']} ids:{greedy['ids']} "
        f"stop:{greedy['stop']} bytes_hex:{greedy['bytes_hex']}"
    )


def test_chapter_23_contrast(chapter_23, published):
    found = read(chapter_23, "training/evidence.json")["contrast"]
    assert published["historical"] == (
        f"bigram_followers:{found['last_token_followers']} "
        f"fixed_context_followers:{found['full_context_followers']} "
        f"neural_context_width:{found['learned_context_width']}"
    )


def test_chapter_23_repeats_every_bit_and_leaves_test_alone(chapter_23):
    evidence = read(chapter_23, "training/evidence.json")
    assert evidence["same_seed_replays_bitwise"] is True
    assert evidence["test_text_encoded_or_scored"] is False
    assert not (chapter_23.folder / "data/windows/test").exists()
    hashes = evidence["sha256"]
    assert sorted(hashes) == ["model", "tokenizer", "train_documents", "validation_documents"]


@pytest.fixture(scope="module")
def toy_gpt(run_preset, real_data):
    corpus = f"corpus.path={real_data('toy_gpt/004_analytics.txt')}"
    project = run_preset("toy_gpt", corpus, stages=(*TRAINING, "generate"))
    done = project.run("neural-ngram", "export", "toy_gpt", "exported")
    assert done.returncode == 0, done.stderr
    return project


def test_toy_gpt_sizes(toy_gpt):
    evidence = read(toy_gpt, "training/evidence.json")
    assert evidence["parameters"]["count"] == 5_488
    assert evidence["windows"]["train"] == 226
    assert evidence["tables"] == {
        "unigram": 112,
        "bigram": 12_544,
        "context_2": 1_404_928,
        "context_3": 157_351_936,
    }


def test_toy_gpt_holds_nothing_out_and_says_so(toy_gpt):
    report = read(toy_gpt, "split/report.json")
    assert report["held_out"] is False
    assert report["documents"] == {"train": 1, "validation": 1, "test": 0}


def test_toy_gpt_exports_the_published_vocabulary(toy_gpt, real_data):
    exported = (toy_gpt.folder / "exported/01_vocabulary.csv").read_text()
    assert exported == real_data("toy_gpt/01_vocabulary.csv").read_text()


def test_toy_gpt_exports_the_published_columns(toy_gpt):
    def columns(name: str) -> list[list[str]]:
        with (toy_gpt.folder / "exported" / name).open(newline="") as handle:
            return list(csv.reader(handle))

    weights, embeddings = columns("02_model_weights.csv"), columns("03_token_embeddings.csv")
    tokens = [row[1] for row in columns("01_vocabulary.csv")[1:]]
    assert weights[0] == ["input_token", *tokens]
    assert [row[0] for row in weights[1:]] == [f"input_dim_{k}" for k in range(32)]
    assert re.fullmatch(r"0|-?\d+\.\d{4}", weights[1][1])
    assert embeddings[0] == ["token_id", "token", *(f"dim_{k}" for k in range(16))]
    assert [row[1] for row in embeddings[1:]] == tokens
    assert re.fullmatch(r"0|-?\d+\.\d{6}", embeddings[1][2])


def test_toy_gpt_describes_itself_as_published(toy_gpt, real_data):
    ours = json.loads((toy_gpt.folder / "exported/00_meta.json").read_text())
    theirs = json.loads(real_data("toy_gpt/00_meta.json").read_text())
    assert ours.keys() == theirs.keys()
    assert ours["corpus"].keys() == theirs["corpus"].keys()
    for name in ("sha256", "num_lines", "num_chars", "filename"):
        assert ours["corpus"][name] == theirs["corpus"][name]
    assert ours["training"]["epochs"] == theirs["training"]["epochs"]
    assert ours["vocab_size"] == theirs["vocab_size"]
    assert ours["artifacts"] == theirs["artifacts"]


def test_toy_gpt_follows_the_published_log(toy_gpt, real_data):
    def log(text: str) -> list[dict[str, str]]:
        return list(csv.DictReader(text.splitlines()))

    ours = log((toy_gpt.folder / "exported/train_log.csv").read_text())
    theirs = log(real_data("toy_gpt/train_log.csv").read_text())
    assert [row["epoch"] for row in ours] == [row["epoch"] for row in theirs]
    for epoch, distance in ((0, 5e-4), (9, 0.01), (24, 0.01)):
        expected = float(theirs[epoch]["avg_loss"])
        assert float(ours[epoch]["avg_loss"]) == pytest.approx(expected, abs=distance)
    assert float(ours[-1]["avg_loss"]) == pytest.approx(float(theirs[-1]["avg_loss"]), abs=0.02)
    assert all(0 < float(row["accuracy"]) < 1 for row in ours)


def test_toy_gpt_is_caught_in_a_cycle_until_it_samples(toy_gpt):
    greedy, *samples = read(toy_gpt, "generation/samples.json")["continuations"]
    cycle = greedy["cycle"]
    assert greedy["ids"][-cycle:] == greedy["ids"][-2 * cycle : -cycle]
    assert all(sample["cycle"] is None for sample in samples)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("next", "data is", "--count", "3"), "a"),
        (("neighbours", "data", "--count", "3"), "cosine"),
        (("parameters",), "157,351,936"),
        (("parameters", "--vocabulary", "27"), "531,441"),
        (("embedding", "embedding.png"), "112 tokens"),
    ],
)
def test_toy_gpt_can_be_looked_at(toy_gpt, monkeypatch, capsys, command, told):
    monkeypatch.chdir(toy_gpt.folder)
    assert main(list(command)) == 0
    assert told in capsys.readouterr().out
    if command[0] == "embedding":
        assert Path("embedding.png").stat().st_size > 1000


def test_a_range_test_is_a_run_of_its_own(toy_gpt):
    done = toy_gpt.run("neural-ngram", "range", "--steps", "20")
    assert done.returncode == 0, done.stderr
    assert "optimizer.learning_rate=" in done.stdout
    files = {"range.csv", "range.png"}
    assert {file.name for file in (toy_gpt.folder / "artifacts/range").iterdir()} == files
    client = MlflowClient(f"sqlite:///{toy_gpt.folder / 'runs/mlflow.db'}")
    (run, *_) = client.search_runs(["1"], "attributes.run_name LIKE '%range test'")
    assert run.data.metrics["range.suggestion"] > 0
    assert len(client.get_metric_history(run.info.run_id, "range.loss_nats")) == 20
    stored = {file.path for file in client.list_artifacts(run.info.run_id, "range")}
    assert stored == {f"range/{name}" for name in files}


@pytest.mark.slow
def test_makemore_reaches_the_published_losses(run_preset, real_data):
    corpus = f"corpus.path={real_data('names/names.txt')}"
    project = run_preset("makemore", corpus, stages=(*TRAINING, "generate"))
    evidence = read(project, "training/evidence.json")
    assert evidence["windows"] == {"train": 182_625, "validation": 22_655}
    assert evidence["parameters"]["count"] == 11_897
    last = evidence["losses_nats"]["200000"]
    assert last["train"] == pytest.approx(2.036, abs=0.02)
    assert last["validation"] == pytest.approx(2.103, abs=0.02)
    assert evidence["losses_nats"]["0"]["train"] == pytest.approx(math.log(27), abs=0.02)
    _, *samples = read(project, "generation/samples.json")["continuations"]
    assert len(samples) == 20
    assert all(sample["stop"] == "eos" and sample["text"].isalpha() for sample in samples)


@pytest.mark.slow
def test_the_ewt_bigram_reaches_its_floor(run_preset, real_data):
    corpus = f"corpus.path={real_data('ewt')}"
    stages = (*TRAINING, "oracle_conditional_entropy", "evaluate")
    project = run_preset("ewt_bigram_floor", corpus, stages=stages)
    metrics = read(project, "evaluation/figures.json")
    assert metrics["train"]["tokens"] == 290_974
    floor = read(project, "oracle/figures.json")["oracle"]["k1"]["entropy_nats"]
    assert floor == pytest.approx(3.901, abs=0.0005)
    assert 0 <= metrics["gap"]["above_floor_nats"] < 0.001
    assert metrics["logit_table"] == {"rank": 256, "rank_bound": 256}
