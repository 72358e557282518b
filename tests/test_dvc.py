"""dvc.yaml tells DVC the truth about what each stage reads."""

from pathlib import Path

import grimp
import pytest
import yaml

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
GRAPH = grimp.build_graph("neural_ngram")


def file_of(module: str) -> str:
    path = "src/" + module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").exists() else f"{path}/__init__.py"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_exactly_the_code_that_it_imports(stage: str):
    script = f"neural_ngram.stages.{stage.replace('-', '_')}"
    assert STAGES[stage]["cmd"] == f"PYTHONPATH=src python -m {script}"
    modules = {"neural_ngram", "neural_ngram.stages", script}
    for module in (script, "neural_ngram.stages"):
        modules |= GRAPH.find_upstream_modules(module)
    declared = {path for path in STAGES[stage]["deps"] if path.startswith("src/")}
    assert declared == {file_of(module) for module in modules}


def test_each_group_of_settings_is_tracked_by_exactly_one_stage():
    tracked = [group for stage in STAGES.values() for group in stage.get("params", [])]
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    assert sorted(tracked) == sorted(params)
