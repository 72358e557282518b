"""The model of the last run, written for other programs."""

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

__all__ = ["export"]


def export(form: str, folder: Path) -> None:
    """Write the last run's model into a folder in one of the formats, and print its contents."""
    _FORMATS[form](folder)


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
