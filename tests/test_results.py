"""The page of published figures and ours."""

from pathlib import Path

import pytest

from neural_ngram.errors import ArtifactError
from neural_ngram.export.results import (
    Measured,
    difference,
    look_up,
    read_figures,
    render,
    render_speed,
)

ROOT = Path(__file__).parents[1]
RUN = Measured(
    12.3,
    {"loss": {0: 3.0, 1: 2.0, 2: 1.0}},
    {"evidence": {"probe": {"logits": [0.5, 0.25]}, "same": True, "count": 3384}},
)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("metric:loss", 1.0),
        ("metric:loss@1", 2.0),
        ("mean:loss@1-2", 1.5),
        ("mean:loss@1-3", None),
        ("perplexity:loss", pytest.approx(2.718281828)),
        ("evidence:probe.logits.1", 0.25),
        ("evidence:probe.logits.7", None),
        ("evidence:nothing.here", None),
        ("generation:continuations", None),
        ("metric:unknown", None),
    ],
)
def test_a_figure_is_found_by_name_step_or_path(where, value):
    assert look_up(RUN, where) == value


@pytest.mark.parametrize(
    ("published", "ours", "gap"),
    [
        ("2.103", 2.10612345, "+0.003123"),
        ("2.103", 2.1026, "-0.000400"),
        ("2.103", 2.1030001, "+1e-07"),
        ("3,384", 3384, "0"),
        ("292,201", 290974, "-1,227"),
        ("true", True, "same"),
        ("limit", "eos", "differs"),
        ("", 1.0, ""),
        ("1.0", None, ""),
    ],
)
def test_the_difference_is_taken_before_rounding(published, ours, gap):
    assert difference(published, ours) == gap


def test_the_page_has_a_row_a_figure_and_says_what_was_not_run():
    text = (
        "experiment,figure,where,published,source\na,loss,metric:loss,1.25,x\nb,loss,metric:l,,\n"
        "b,loss of a,a/metric:loss,,\n"
    )
    page = render(read_figures(text), {"a": RUN}, "a machine")
    assert "| loss | 1.25 | 1 | -0.250000 | x |" in page
    assert "trained in 12 s" in page
    assert "`dvc exp run -S experiment=b`" in page
    assert "not run on this machine" in page
    assert "| loss of a |  | 1 |  |  |" in page


def test_another_table_is_refused():
    with pytest.raises(ArtifactError, match="fix its first line"):
        read_figures("a,b\n1,2\n")


def test_each_experiment_of_the_committed_table_has_its_preset():
    figures = read_figures((ROOT / "docs/published.csv").read_text())
    for name in {figure.experiment for figure in figures}:
        assert (ROOT / f"conf/experiment/{name}.yaml").exists()


def test_the_speed_table_has_a_row_for_each_comparison():
    section = render_speed(
        "task,peer,ours_ms,peer_ms,ratio,reached,machine\n"
        "encode,the library,6.5906,6.8551,1.05,7 / 7 tokens,a processor\n"
    )
    assert "Machine: a processor." in section
    assert "| encode | 6.591 | 6.855 | 1.05 | the library | 7 / 7 tokens |" in section
