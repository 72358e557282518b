"""Metrics of stages that are still to run are marked, and no others."""

import json
from pathlib import Path

import pytest
import yaml

from neural_ngram.pipeline.unfinished import mark, pending

STAGES = yaml.safe_load((Path(__file__).parents[1] / "dvc.yaml").read_text())["stages"]
EVALUATED, TESTED = "artifacts/evaluation/metrics.json", "artifacts/test/metrics.json"


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("check-configuration", set()),
        ("split-corpus", {EVALUATED, TESTED}),
        ("train", {EVALUATED, TESTED}),
        ("oracle-conditional-entropy", {EVALUATED, TESTED}),
        ("evaluate", {EVALUATED, TESTED}),
        ("evaluate-test", {TESTED}),
        ("generate", set()),
    ],
)
def test_the_metrics_that_a_stage_leads_to(stage: str, expected: set[str]):
    assert set(map(str, pending(STAGES, stage, {}))) == expected


def test_folders_templates_and_flags_are_followed():
    stages = {
        "a": {"outs": ["made/folder"]},
        "b": {"deps": ["${where}"], "metrics": [{"b.json": {"cache": False}}]},
        "c": {"deps": ["b.json"], "metrics": ["c.json"]},
        "d": {"metrics": ["d.json"]},
        "e": {"foreach": [1], "do": {"cmd": "x"}},
    }
    parameters = {"where": "made/folder/file"}
    assert list(map(str, pending(stages, "a", parameters))) == ["b.json", "c.json"]
    assert list(map(str, pending(stages, "a", {"where": "other"}))) == []


def test_a_mark_takes_the_place_of_the_old_figure(tmp_path: Path):
    (tmp_path / "dvc.yaml").write_text("stages: {a: {cmd: x, metrics: [m/a.json]}}")
    for old in ("", '{"loss": 1.0}'):
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m/a.json").write_text(old)
        mark(tmp_path, "a", {})
        assert json.loads((tmp_path / "m/a.json").read_text()) == {"unfinished": "a"}
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["a.json"]
