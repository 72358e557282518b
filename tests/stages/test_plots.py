"""What DVC shows of two experiments: plots that render, and few columns."""

import csv
import json
import re
import shutil

import pytest
import vl_convert

PLOTS = {
    "losses",
    "conditional_entropy",
    "decomposition",
    "loss_by_place",
    "loss_by_frequency",
    "calibration",
}
PARTS = {"floor", "kneser_ney", "interpolated", "train", "validation"}
METRICS = {
    *("floor.loss_nats", "kneser_ney.loss_nats", "interpolated.loss_nats", "train.loss_nats"),
    *("validation.loss_nats", "validation.perplexity", "validation.bits_per_byte"),
    "validation.accuracy",
}


@pytest.fixture(scope="module")
def compared(pipeline, tmp_path_factory: pytest.TempPathFactory):
    """The pipeline as committed, and an experiment that stops earlier."""
    folder = tmp_path_factory.mktemp("compared") / "copy"
    shutil.copytree(pipeline.folder, folder, symlinks=True)
    project = type(pipeline)(folder)
    project.experiment()
    assert project.run("git", "add", ".").returncode == 0
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    assert project.run("git", *identity, "commit", "-qm", "results").returncode == 0
    project.experiment("training.max_steps=15", options=("--name", "shorter"))
    return project


def test_plots_of_two_experiments_are_drawn_in_one_picture_each(compared):
    compared.dvc("plots", "diff", "HEAD", "shorter", "--out", "plots")
    page = (compared.folder / "plots/index.html").read_text()
    drawn = re.findall(r"var spec = (\{.*?\});\s*vegaEmbed\('#(.*?)'", page, re.DOTALL)
    assert {name for _, name in drawn} == PLOTS
    for specification, name in drawn:
        picture = vl_convert.vegalite_to_svg(json.loads(specification))
        assert ">HEAD<" in picture, name
        assert ">shorter<" in picture, name
        assert "NaN" not in picture, name


def test_every_plot_can_be_shown_alone(compared):
    shown = json.loads(compared.dvc("plots", "show", "--json"))
    assert not shown.get("errors")
    assert {name.replace(" ", "_") for name in shown["data"]} == PLOTS


def test_experiments_are_compared_in_few_columns(compared):
    table = compared.dvc("exp", "show", "--only-changed", "--hide-workspace", "--csv")
    header, *_ = csv.reader(table.splitlines())
    of_dvc = {"Experiment", "rev", "typ", "Created", "parent", "State", "Executor"}
    metrics = {name for name in header if name.rpartition(".")[0] in PARTS}
    assert metrics <= METRICS
    assert {"train.loss_nats", "validation.loss_nats", "training.max_steps"} <= set(header)
    assert len(set(header) - of_dvc - metrics) <= 3


def test_a_difference_of_metrics_names_each_figure_once(compared):
    found = json.loads(compared.dvc("metrics", "diff", "HEAD", "shorter", "--all", "--json"))
    names = [name for figures in found.values() for name in figures if name != "test"]
    assert set(names) == METRICS
    assert len(names) == len(METRICS)
