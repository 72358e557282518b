"""What a program does with the library alone: import all of it, train, save, load, sample, score.

Run as `python alone.py FOLDER NAME…`: the modules NAME cannot be imported, as if their packages
were not installed. It prints what came out, as JSON.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from missing import Missing

sys.meta_path.insert(0, Missing(sys.argv[2:]))

import torch

from neural_ngram.generation.trained import load
from neural_ngram.model import storage
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import (
    GenerationSettings,
    ModelSettings,
    OptimizerSettings,
    TokenizerSettings,
    TrainingSettings,
    WindowSettings,
)
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows
from neural_ngram.training.loop import train

ROOMS = (
    *("choices", "corpus", "evaluation", "generation", "library", "model", "ngram", "tokens"),
    "training",
)
TEXTS = ["abcabcabcabc", "bcabcabcabca", "cabcabcabcab"]


def trained(folder: Path) -> dict[str, object]:
    tokenizer = tokenizers.learn(TEXTS, TokenizerSettings(kind="character", markers="none"))
    asked = WindowSettings(context_length=2, padding="none")
    part, _ = windows.encode(TEXTS, tokenizer, asked)
    shape = Architecture(
        vocabulary_size=tokenizer.vocabulary_size,
        context_length=2,
        settings=ModelSettings(embedding_width=4, hidden_width=8),
    )
    model = initialise(shape, SplitMix64(1), torch.float32)
    record = train(
        model,
        {"train": part, "validation": part},
        OptimizerSettings(learning_rate=0.05),
        TrainingSettings(max_steps=200, evaluate_every=200, batch_size=8),
    )
    origin = {"tokenizer_sha256": tokenizers.save(tokenizer, folder)}
    storage.save(model, folder / "model.safetensors", origin)
    counts = KneserNey.fit(part, vocabulary_size=tokenizer.vocabulary_size, order=2)
    known = load(folder / "model.safetensors", folder)
    greedy = GenerationSettings(temperature=0.0, max_new_tokens=7)
    return {
        "first_loss": record.evaluations[0].train_loss_nats,
        "loss": record.kept.train_loss_nats,
        "greedy": "".join(known.stream("ab", greedy)),
        "score": known.score("abcabcabc").loss_nats,
        "baseline": -float(counts.log_probabilities(part).mean()),
    }


if __name__ == "__main__":
    for room in ROOMS:
        package = import_module(f"neural_ngram.{room}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    print(json.dumps(trained(Path(sys.argv[1])) | {"from": package.__file__}))
