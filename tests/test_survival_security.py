"""Nothing is unpickled or evaluated, and nothing listens to other machines."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "hydra_plugins").rglob("*.py")])
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
# What may run code that stands in a file, unless the keyword has the value.
CALLS = {
    ("torch", "load"): ("weights_only", True),
    ("np", "load"): ("allow_pickle", False),
    ("numpy", "load"): ("allow_pickle", False),
    ("np", "save"): ("allow_pickle", False),
    ("pd", "read_pickle"): None,
    ("yaml", "load"): None,
    ("yaml", "unsafe_load"): None,
    ("yaml", "full_load"): None,
    ("hydra.utils", "instantiate"): None,
    ("os", "system"): None,
    ("os", "popen"): None,
}


def complaints(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=module, names=names):
                if (module or "").split(".")[0] in MODULES:
                    yield f"from {module}"
                yield from (n.name for n in names if (module, n.name) in CALLS)
            case ast.Call(func=ast.Name(id="eval" | "exec" | "compile" | "__import__" as name)):
                yield name
            case ast.Call(func=ast.Attribute(value=owner, attr=attribute), keywords=keywords):
                yield from _unsafe_call(ast.unparse(owner), attribute, keywords)
    # A shell would interpret what stands in a setting.
    if "shell=True" in source:
        yield "shell=True"


def _unsafe_call(owner: str, attribute: str, keywords: list[ast.keyword]) -> Iterator[str]:
    if (owner, attribute) not in CALLS:
        return
    needed = CALLS[owner, attribute]
    given = [
        (k.arg, k.value.value) for k in keywords if isinstance(k.value, ast.Constant) and k.arg
    ]
    if needed is None or needed not in given:
        yield f"{owner}.{attribute}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_is_unpickled_or_evaluated(file: Path):
    assert list(complaints(file.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        *("import pickle", "from pickle import loads", "import joblib as j", "eval(x)"),
        *("torch.load(p)", "torch.load(p, weights_only=False)", "np.load(p)"),
        *("np.load(p, allow_pickle=True)", "yaml.load(p)", "from yaml import load"),
        *("pd.read_pickle(p)", "os.system(x)", "run(x, shell=True)", "exec(x)"),
    ],
)
def test_the_search_finds_what_it_looks_for(source: str):
    assert list(complaints(source))


@pytest.mark.promise("reliability")
def test_the_user_interface_listens_to_this_machine_alone():
    (line,) = [x for x in (ROOT / "Makefile").read_text().splitlines() if "mlflow ui" in x]
    assert "--host 127.0.0.1" in line


@pytest.mark.promise("reliability")
def test_every_preset_that_fetches_names_a_hash_and_a_safe_address():
    for preset in (ROOT / "conf/corpus").glob("*.yaml"):
        text = preset.read_text()
        if "\nurl:" in text:
            assert "\nsha256:" in text
            assert "http://" not in text
