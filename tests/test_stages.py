"""A stage is short: what computes is a function of a room, which a notebook can call as well."""

import subprocess
import sys
from pathlib import Path

import pytest

STAGES = sorted((Path(__file__).parents[1] / "src/neural_ngram/stages").glob("*.py"))
MOST_LINES = 60
NOTEBOOK = """
import sys
from pathlib import Path

import numpy as np

from neural_ngram.corpus.division import divide
from neural_ngram.corpus.origin import draw_corpus
from neural_ngram.corpus.summary import sentences
from neural_ngram.evaluation.run import evaluate, evaluate_test
from neural_ngram.evaluation.storage import load_partition, save
from neural_ngram.generation.samples import continuations
from neural_ngram.generation.trained import Trained
from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.settings import (
    CorpusSettings, GenerationSettings, ModelSettings, Settings, SourceSettings, TokenizerSettings,
    TrainingSettings, WindowSettings,
)
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.training.loop import train
from neural_ngram.training.start import prepare, replays

said = []
source = SourceSettings(documents=40, length=60, alphabet="abc", order=2)
settings = Settings(
    corpus=CorpusSettings(source=source),
    tokenizer=TokenizerSettings(kind="character", markers="none"),
    windows=WindowSettings(context_length=2, padding="none"),
    model=ModelSettings(embedding_width=4, hidden_width=8),
    training=TrainingSettings(batch_size=32, max_steps=200, evaluate_every=100),
)
corpus = draw_corpus(source)
division = divide(corpus, settings.corpus)
said += sentences(division)
texts = {name: table["text"].tolist() for name, table in division.tables.items()}
tokenizer = tokenizers.learn(texts["train"], settings.tokenizer)
sha256 = tokenizers.save(tokenizer, Path("tokenizer"))
for name in texts:
    windows, counts = token_windows.encode(texts[name], tokenizer, settings.windows)
    origin = {"vocabulary_size": tokenizer.vocabulary_size, "tokenizer_sha256": sha256}
    token_windows.save(windows, Path("windows") / name, counts | origin | {"documents_sha256": ""})
start = prepare(settings, Path("windows"), Path("tokenizer"), said.append)
record = train(start.model, start.windows, settings.optimizer, settings.training)
assert replays(start, record, settings, Path("tokenizer"))
loaded = {name: load_partition(Path("windows") / name, start.origin) for name in texts}
fitted = KneserNey.fit(start.windows["train"], vocabulary_size=tokenizer.vocabulary_size, order=3)
baseline = fitted.log_probabilities
floors = conditional_entropies(start.windows["train"])
evaluation = evaluate(
    start.model,
    loaded,
    baseline,
    {
        "oracle": {f"k{each.order}": {"entropy_nats": each.entropy_nats} for each in floors},
        "kneser_ney": {
            name: {"loss_nats": -float(baseline(part).mean())}
            for name, part in start.windows.items()
        },
    },
    unknown=tokenizer.unknown,
    batch_size=64,
    source_entropies_nats=corpus.entropies_nats,
)
said += evaluation.sentences
save(evaluation, Path("evaluation"), "")
figures = evaluation.figures
assert figures["validation"]["loss_nats"] == record.kept.validation_loss_nats
assert figures["source"]["entropy_nats"] == corpus.entropies_nats[2]
parts = evaluation.parts
assert np.isclose(parts.floor + parts.excess + parts.generalization_gap, parts.model)
weight = figures["interpolated"]["tuned"]["model_weight"]
again = evaluate_test(
    start.model,
    loaded["validation"],
    start.windows["train"],
    baseline,
    weight=weight,
    unknown=None,
    batch_size=7,
)
for name in ("loss_nats", "windows_seen_in_train"):
    assert np.isclose(again.figures[name], figures["validation"][name])
assert np.isclose(again.figures["interpolated"]["tuned"]["loss_nats"], parts.interpolated)
asked = GenerationSettings(prompt="ab", samples=2, max_new_tokens=5)
shown = []
found = list(continuations(Trained(start.model, tokenizer), asked, lambda *each: shown.append(
    (each[0], "".join(each[1])))))
assert [(each["method"], each["text"]) for each in found] == shown and len(shown) == 3
surround = {"dvc", "hydra", "mlflow", "omegaconf"} & set(sys.modules)
assert not surround, surround
print(*said, sep="\\n")
"""


@pytest.mark.parametrize("script", STAGES, ids=lambda path: path.stem)
def test_a_stage_has_at_most_sixty_lines(script: Path):
    assert len(script.read_text().splitlines()) <= MOST_LINES


def test_what_the_stages_do_is_done_without_dvc_hydra_and_mlflow(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read, *_ = lines = done.stdout.splitlines()
    assert read == "40 documents drawn from the synthetic source"
    assert any("of validation windows (context and target) also occur in train" in x for x in lines)
    written = {path.name for path in (tmp_path / "evaluation").iterdir()}
    tables = ("decomposition", "positions", "frequencies", "calibration")
    assert written == {"figures.json", "metrics.json", *(f"{name}.csv" for name in tables)}
