"""docs/howto/extend.md: each piece is added to a copy of the package as printed, and trains."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/howto/extend.md").read_text(encoding="utf-8")
SECTIONS = {  # heading: the setting that names the piece
    "A hidden activation": "model.hidden=softsign",
    "A hidden layer": "model.hidden=glu",
    "An optimizer": "optimizer.name=lion",
}
TRAINING = """
import json, sys
from dataclasses import replace

import numpy as np, onnxruntime, torch

from neural_ngram.export.card import model_card
from neural_ngram.export.onnx import onnx_graph
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise, logits, views
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import CorpusSettings, Settings, check
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.gradients.autograd import Autograd
from neural_ngram.training.gradients.batch import Batch
from neural_ngram.training.gradients.closed_form import ClosedForm
from neural_ngram.training.loop import train


def trained(overrides):
    settings = Settings()
    for group, name, value in overrides:
        changed = replace(getattr(settings, group), **{name: value})
        settings = check(replace(settings, **{group: changed}))
    tokens = np.tile(np.arange(12, dtype=np.uint8), 40)
    windows = Windows(tokens=tokens, offsets=np.array([0, len(tokens)]), context_length=2)
    chosen = replace(settings.model, hidden_layers=2, direct=True, dropout=0.1)
    shape = Architecture(vocabulary_size=12, context_length=2, settings=chosen)
    model = initialise(shape, SplitMix64(1), torch.float64)
    batch = Batch(torch.arange(8) % 5, torch.arange(4) * 12 + 3)
    gradients = [torch.zeros_like(model.flat) for _ in range(2)]
    for kind, into in zip((ClosedForm, Autograd), gradients):
        kind(model, views(shape, into), frozen=False)(batch)
    torch.testing.assert_close(*gradients)
    run = replace(settings.training, batch_size=64, max_steps=200, evaluate_every=200)
    record = train(model, {"train": windows, "validation": windows}, settings.optimizer, run)
    session = onnxruntime.InferenceSession(onnx_graph(model).SerializeToString())
    contexts = windows.contexts(slice(20)).astype(np.int64)
    (found,) = session.run(["logits"], {"context": contexts})
    np.testing.assert_allclose(found, logits(model, torch.from_numpy(contexts)), 1e-3, 1e-3)
    card = model_card("it", shape, CorpusSettings(), {}, {})
    return {
        "losses": [evaluation.train_loss_nats for evaluation in record.evaluations],
        "parameters": [*model.parameters],
        "card": card,
    }


pieces = json.load(sys.stdin)
print(json.dumps({heading: trained(overrides) for heading, overrides in pieces.items()}))
"""


def blocks(heading: str) -> list[str]:
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    return re.findall(r"^```bash\n(.*?)^```", section, re.S | re.M)


def overrides(command: str) -> list[tuple[str, str, object]]:
    """Group, name and value of each setting of `dvc exp run` but the number of steps."""
    found = re.findall(r"-S (\w+)\.(\w+)=(\S+)", command)
    return [
        (group, name, yaml.safe_load(value)) for group, name, value in found if name != "max_steps"
    ]


def run(folder: Path, *command: str, stdin: str = "") -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What each piece's training gave, in a copy of the package that holds them all."""
    folder = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src/neural_ngram", folder / "src/neural_ngram", ignore=ignored)
    for heading in SECTIONS:
        adding, _ = blocks(heading)
        run(folder, "bash", "-euc", adding)
    printed = json.dumps({heading: overrides(blocks(heading)[1]) for heading in SECTIONS})
    return json.loads(run(folder, sys.executable, "-c", TRAINING, stdin=printed))


@pytest.mark.parametrize("heading", SECTIONS)
def test_a_piece_that_is_added_as_printed_trains(extended: dict, heading: str):
    _, running = blocks(heading)
    assert SECTIONS[heading] in running.split()
    first, last = extended[heading]["losses"]
    assert (first > 2.4, last < 0.3) == (True, True)


def test_the_pieces_are_what_was_trained(extended: dict):
    assert {"hidden", "hidden_2"} <= {*extended["A hidden activation"]["parameters"]}
    assert "h = z / (1 + np.abs(z))" in extended["A hidden activation"]["card"]
    parameters = extended["A hidden layer"]["parameters"]
    assert {"gate", "up", "gate_2", "up_2"} == {*parameters} - {"embedding", "output", "direct"}


@pytest.mark.parametrize("setting", SECTIONS.values())
def test_without_the_page_no_piece_is_known(setting: str):
    group, name, value = re.split(r"[.=]", setting)
    code = (
        "from dataclasses import replace; from neural_ngram.settings import Settings, check; "
        f"s = Settings(); check(replace(s, {group}=replace(s.{group}, {name}={value!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"{group}.{name} is {value!r}, but must be one of" in done.stderr
