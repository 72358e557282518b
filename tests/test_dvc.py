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
HIDDEN = "neural_ngram.model.hidden"
LAYERS = {"neural_ngram.model.layers", *GRAPH.find_children("neural_ngram.model.layers")}


SURROUND = (
    *("cli", "pipeline", "tracking", "export", "settings", "errors"),
    *("training.progress", "training.live"),
)
DRAWN = "neural_ngram.export.charts"  # an output of evaluate, unlike the rest of its room
COSTLY = ("split-corpus", "learn-bpe", "build-windows", "train")


def surrounds(module: str) -> bool:
    name = module.removeprefix("neural_ngram").lstrip(".")
    within = any(name == room or name.startswith(f"{room}.") for room in SURROUND)
    return module != DRAWN and (within or not name)


def computes(stage: str) -> set[str]:
    """The files of the modules that can change what a stage writes."""
    todo, found = [f"neural_ngram.stages.{stage.replace('-', '_')}"], set[str]()
    while todo:
        module = todo.pop()
        if module not in found and not surrounds(module):
            found.add(module)
            todo += GRAPH.find_modules_directly_imported_by(module)
            todo += LAYERS if module == HIDDEN else ()  # which imports them by name
    paths = {f"src/{module.replace('.', '/')}.py" for module in found}
    return {path for path in paths if (ROOT / path).exists()}  # a package holds a docstring alone


def declared(stage: str) -> dict[str, set[str]]:
    """The files of the package below each of a stage's code dependencies."""
    return {
        path: {
            file.relative_to(ROOT).as_posix()
            for file in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))
            if file.name != "__init__.py"
        }
        for path in STAGES[stage]["deps"]
        if path.startswith("src/")
    }


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_runs_the_script_of_its_name(stage: str):
    script = f"neural_ngram.stages.{stage.replace('-', '_')}"
    assert STAGES[stage]["cmd"] == f"PYTHONPATH=src python -m {script}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_all_code_that_can_change_its_outputs(stage: str):
    assert computes(stage) <= set().union(*declared(stage).values())


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_no_code_that_it_does_not_use(stage: str):
    if stage == "check-configuration":
        return  # it depends on what it checks
    used = computes(stage)
    for path, files in declared(stage).items():
        assert files <= used if stage in COSTLY else files & used, path


def test_packages_hold_a_docstring_and_nothing_else():
    for file in (ROOT / "src/neural_ngram").rglob("__init__.py"):
        if file.parent.name != "neural_ngram":  # the top hands out the public verbs
            body = ast.parse(file.read_text()).body
            assert len(body) == 1, file
            assert ast.get_docstring(ast.Module(body, [])), file


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
        "import os, sys, neural_ngram.pipeline.frame; heavy = {'numpy', 'pandas', 'pyarrow', "
        "'torch', 'mlflow', 'tokenizers'} & set(sys.modules); assert not heavy, heavy; "
        "assert len(os.listdir('/proc/self/task') if sys.platform == 'linux' else [0]) == 1"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
