"""dvc.yaml tells DVC the truth about what each stage reads."""

import ast
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
import yaml

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
GRAPH = grimp.build_graph("neural_ngram", exclude_type_checking_imports=True)
LAYERS = {"neural_ngram.model.layers", *GRAPH.find_children("neural_ngram.model.layers")}


def file_of(module: str) -> str:
    path = "src/" + module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").exists() else f"{path}/__init__.py"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_exactly_the_code_that_it_imports(stage: str):
    script = f"neural_ngram.stages.{stage.replace('-', '_')}"
    assert STAGES[stage]["cmd"] == f"PYTHONPATH=src python -m {script}"
    modules = {"neural_ngram", "neural_ngram.pipeline.frame", script}
    for module in (script, "neural_ngram.pipeline.frame"):
        modules |= GRAPH.find_upstream_modules(module)
    if "neural_ngram.model.hidden" in modules:  # which imports layers by name, as no graph shows
        modules |= LAYERS.union(*map(GRAPH.find_upstream_modules, LAYERS))
    declared = {path for path in STAGES[stage]["deps"] if path.startswith("src/")}
    files = {file_of(module) for module in modules}
    folder = "src/neural_ngram/model/layers"
    assert declared == {folder if file.startswith(folder) else file for file in files}


def test_each_group_of_settings_is_tracked_by_exactly_one_stage():
    groups = [group for stage in STAGES.values() for group in stage.get("params", [])]
    tracked = [group for group in groups if "." not in group]  # a part of a group may be read too
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    assert sorted(tracked) == sorted(params)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_closes_its_files_before_it_imports_anything_heavy(stage: str):
    script = (ROOT / f"src/neural_ngram/stages/{stage.replace('-', '_')}.py").read_text()
    first, second, *_ = ast.parse(script).body[1:]
    assert ast.unparse(first) == "from neural_ngram.pipeline.frame import enter"
    assert ast.unparse(second) == "if __name__ == '__main__':\n    enter()"


def test_the_frame_of_the_stages_imports_nothing_heavy_and_starts_no_thread():
    code = (
        "import os, sys, neural_ngram.pipeline.frame; heavy = {'numpy', 'pandas', 'pyarrow', 'torch', "
        "'mlflow', 'tokenizers'} & set(sys.modules); assert not heavy, heavy; "
        "assert len(os.listdir('/proc/self/task') if sys.platform == 'linux' else [0]) == 1"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
