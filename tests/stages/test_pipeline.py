"""All stages under DVC: what runs when, what is logged, what is refused."""

import csv
import json
import math
import re

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from neural_ngram.artifacts import sha256_of_file
from neural_ngram.pipeline.boundary import landlock

STAGES = (
    *("split-corpus", "learn-bpe", "build-windows", "train"),
    *("evaluate", "evaluate-test", "oracle-conditional-entropy", "generate"),
)


def runs(project) -> list[Run]:
    client = MlflowClient(f"sqlite:///{project.folder / 'runs/mlflow.db'}")
    experiment = client.get_experiment_by_name("neural-ngram")
    return client.search_runs([experiment.experiment_id])


def test_all_eight_stages_run(pipeline):
    for stage in STAGES:
        assert f"Running stage '{stage}'" in pipeline.first_output


def test_training_says_its_size_before_it_starts_and_how_the_start_stands_to_chance(pipeline):
    size = pipeline.first_output.index(" parameters, ")
    assert size < pipeline.first_output.index("step       0")
    loss, chance = re.search(
        r"initial loss ([\d.]+) nats \(a uniform model: ln V = ([\d.]+)\)", pipeline.first_output
    ).groups()
    assert float(chance) == round(math.log(300), 4)
    assert float(loss) == pytest.approx(float(chance), abs=0.05)


def test_one_run_holds_parameters_curves_metrics_and_artifacts(pipeline):
    (run,) = [run for run in runs(pipeline) if run.data.params["training.max_steps"] == "30"]
    assert run.info.run_name == "embedded swiglu C4 D32 H64"
    model = pipeline.folder / "artifacts/model/model.safetensors"
    assert run.data.tags["model_sha256"] == sha256_of_file(model)
    strongest = "landlock" if landlock.version() else "audit"
    assert run.data.tags["boundary"] == run.data.tags["boundary.evaluate"] == strongest
    head = pipeline.run("git", "rev-parse", "HEAD").stdout.strip()
    assert run.data.tags["mlflow.source.git.commit"] == head
    assert {d.dataset.name for d in run.inputs.dataset_inputs} == {"train", "validation"}
    wanted = {
        *("train.loss_nats", "train.perplexity", "train.bits_per_byte", "train.accuracy"),
        *("validation.loss_nats", "validation.tokens", "oracle.k4.entropy_nats"),
        *(
            "kneser_ney.validation.loss_nats",
            "gap.above_floor_nats",
            "interpolated.equal.loss_nats",
        ),
    }
    assert wanted <= run.data.metrics.keys()
    client = MlflowClient(f"sqlite:///{pipeline.folder / 'runs/mlflow.db'}")
    assert len(client.get_metric_history(run.info.run_id, "batch.loss_nats")) == 30
    folders = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert folders == {"model", "tokenizer", "training", "evaluation", "oracle", "generation"}
    (version,) = client.search_model_versions(f"run_id = '{run.info.run_id}'")
    assert (version.name, version.description) == ("neural-ngram", run.info.run_name)


def test_evaluation_repeats_the_last_objective_of_training(pipeline):
    metrics = json.loads((pipeline.folder / "artifacts/evaluation/figures.json").read_text())
    with (pipeline.folder / "artifacts/training/evaluations.csv").open() as table:
        *_, last = csv.DictReader(table)
    assert last["step"] == "30"
    for name in ("train", "validation"):
        loss = float(last[f"{name}_loss_nats"])
        assert metrics[name]["loss_nats"] == pytest.approx(loss, rel=1e-6)


def test_a_second_run_does_nothing(pipeline):
    assert "Data and pipelines are up to date" in pipeline.dvc("repro")


def test_a_new_temperature_runs_generate_alone_and_adds_no_run(pipeline):
    before = len(runs(pipeline))
    printed = pipeline.experiment("generation.temperature=0.7")
    assert "Running stage 'generate'" in printed
    assert printed.count("Running stage") == 1
    assert len(runs(pipeline)) == before


def test_forced_reproduction_gives_the_same_bytes(pipeline):
    lock = (pipeline.folder / "dvc.lock").read_bytes()
    pipeline.dvc("repro", "--force")
    assert (pipeline.folder / "dvc.lock").read_bytes() == lock


def test_metrics_plots_and_graph_are_shown(pipeline):
    assert "train.loss_nats" in pipeline.dvc("metrics", "show")
    assert "train_loss_nats" in pipeline.dvc("plots", "show", "--json")
    assert "oracle-conditional-entropy" in pipeline.dvc("dag")


def test_the_count_model_is_written_as_arpa(pipeline):
    done = pipeline.run("neural-ngram", "arpa", "counts.arpa")
    assert done.returncode == 0, done.stderr
    lines = (pipeline.folder / "counts.arpa").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("\\data\\", "\\end\\")
    assert "\\5-grams:" in lines
    assert any(line.split("\t")[1:2] == ["</s>"] for line in lines)


def test_an_edited_conf_is_never_ignored(pipeline):
    preset = pipeline.folder / "conf/generation/default.yaml"
    old = preset.read_text()
    preset.write_text(old + "# edited\n")
    try:
        done = pipeline.run("dvc", "repro")
    finally:
        preset.write_text(old)
    assert done.returncode != 0
    assert "run `neural-ngram compose`" in done.stderr
