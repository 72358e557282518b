"""Write the model of the last run into a folder, for other programs.

safetensors: weights, tokenizer and a model card. onnx: a graph from context to logits, and the
tokenizer. tokenizer: tokenizer.json alone. word2vec: the embedding table as text. toy_gpt: the CSV
files of the Toy-GPT series (linear models).
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from neural_ngram.artifacts import atomic, sha256_of_file, write_json, write_text
from neural_ngram.cli.last_run import current_settings, evaluated, last_run
from neural_ngram.cli.toy_gpt import export_toy_gpt
from neural_ngram.errors import ArtifactError
from neural_ngram.export.card import model_card
from neural_ngram.model.architecture import parameter_count
from neural_ngram.model.storage import save
from neural_ngram.model.vectors import word2vec
from neural_ngram.pipeline.project import TOKENIZER, run_name
from neural_ngram.tokens import tokenizer as tokenizers

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("format", choices=_FORMATS)
    parser.add_argument("folder", type=Path, help="the folder to write into")
    parser.epilog = "examples:\n  neural-ngram export onnx exported"


def run(chosen: argparse.Namespace) -> None:
    """Write the last run's model in one of the formats, and say what is there."""
    _FORMATS[chosen.format](chosen.folder)


def _safetensors(folder: Path) -> None:
    run, settings = last_run(), current_settings()
    figures = evaluated()
    hashes = {
        "model": figures["model_sha256"],
        "tokenizer": sha256_of_file(TOKENIZER / "tokenizer.json"),
        "documents of train": run.origin["documents_sha256"],
    }
    architecture = run.model.architecture
    card = model_card(run_name(settings), architecture, settings.corpus, figures, hashes)
    save(run.model, folder / "model.safetensors", run.origin)
    write_json(folder / "config.json", architecture.describe())
    tokenizers.save(run.tokenizer, folder)
    write_text(folder / "README.md", card)
    print(f"{folder}: {parameter_count(architecture):,} parameters, with a model card, README.md")


def _onnx(folder: Path) -> None:
    try:
        graphs = import_module("neural_ngram.export.onnx")
    except ModuleNotFoundError as problem:
        raise ArtifactError(
            f"{problem.name}, which writes ONNX, is not installed; run "
            "`pip install -c constraints.txt -e '.[onnx]'`"
        ) from None
    run = last_run()
    graph = graphs.onnx_graph(run.model)
    with atomic(folder / "model.onnx") as temporary:
        temporary.write_bytes(graph.SerializeToString(deterministic=True))
    tokenizers.save(run.tokenizer, folder)
    print(f"{folder}: model.onnx, from context (int64) to logits (float32), and its tokenizer.json")


def _tokenizer(folder: Path) -> None:
    run = last_run()
    tokenizers.save(run.tokenizer, folder)
    print(f"{folder}: tokenizer.json, {run.tokenizer.vocabulary_size:,} tokens")


def _word2vec(folder: Path) -> None:
    run = last_run()
    embedding_VD = run.model.parameters["embedding"].numpy()
    lines = word2vec(run.tokenizer.names, embedding_VD)
    write_text(folder / "embedding.txt", "".join(f"{line}\n" for line in lines))
    V, D = embedding_VD.shape
    print(f"{folder}: embedding.txt, {V:,} tokens with {D} numbers each")


_FORMATS: dict[str, Callable[[Path], None]] = {
    "safetensors": _safetensors,
    "onnx": _onnx,
    "tokenizer": _tokenizer,
    "word2vec": _word2vec,
    "toy_gpt": export_toy_gpt,
}
