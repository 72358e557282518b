"""A model and its tokenizer as a folder that MLflow can serve.

MLmodel             signature, how to load it
model/              model.safetensors, the record of its hash, tokenizer.json
code/               this package, so that it loads wherever its requirements are installed
requirements.txt    their exact versions
input_example.json  serving_input_example.json
"""

import platform
import shutil
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mlflow import pyfunc
from mlflow.models import Model, ModelSignature
from mlflow.types.schema import Array, ColSpec, Object, ParamSchema, ParamSpec, Property, Schema

from neural_ngram.artifacts import write_json, write_text
from neural_ngram.errors import ModelError, TokenizerError
from neural_ngram.export.serving import PARAMETERS
from neural_ngram.generation.trained import Trained, load
from neural_ngram.model.storage import hash_file

__all__ = ["package"]

IMPORTED = (
    *("filelock", "mlflow", "numpy", "pandas"),
    *("PyYAML", "safetensors", "tokenizers", "torch"),
)


def signature() -> ModelSignature:
    """The types of inputs, outputs and parameters."""
    token = Object(
        [Property("token", "string"), Property("id", "long"), Property("probability", "double")]
    )
    return ModelSignature(
        inputs=Schema([ColSpec("string", "prompt")]),
        outputs=Schema(
            [ColSpec(Array("string"), "continuations"), ColSpec(Array(token), "next_tokens")]
        ),
        params=ParamSchema([ParamSpec(name, *rest) for name, rest in PARAMETERS.items()]),
    )


def package(folder: Path, model: Path, tokenizer: Path) -> None:
    """Fill an empty folder.

    MLflow's own writer would take two seconds to compare the requirements with what is installed.
    """
    (folder / "model").mkdir()
    shutil.copy(model, folder / "model/model.safetensors")
    shutil.copy(hash_file(model), folder / "model/model.safetensors.sha256")
    shutil.copy(tokenizer / "tokenizer.json", folder / "model")
    example = _example(folder, _prompt(load(model, tokenizer)))
    described = Model(signature=signature(), saved_input_example_info=example)
    pyfunc.add_to_model(
        described,
        loader_module="neural_ngram.export.serving",
        data="model",
        code="code",
        python_env="python_env.yaml",
    )
    described.save(str(folder / "MLmodel"))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(__file__).parents[1], folder / "code/neural_ngram", ignore=ignored)
    pins = [f"{name}=={version(name).partition('+')[0]}" for name in IMPORTED]
    write_text(folder / "requirements.txt", "\n".join(pins) + "\n")
    write_text(
        folder / "python_env.yaml",
        f"python: {platform.python_version()}\ndependencies: [-r requirements.txt]\n",
    )


def _prompt(trained: Trained) -> str:
    """A text that the tokenizer can encode, long enough for the model's context."""
    tokenizer, length = trained.tokenizer, trained.model.architecture.context_length
    for text in ("At night", "At night " * length):
        with suppress(TokenizerError, ModelError):
            trained.context(text)
            return text
    return tokenizer.decode([tokenizer.vocabulary_size - 1] * length)


def _example(folder: Path, prompt: str) -> dict[str, Any]:
    """Write a valid input; returns how MLflow finds it."""
    table = {"columns": ["prompt"], "data": [[prompt]]}
    params = {name: default for name, (_, default) in PARAMETERS.items() if default is not None}
    write_json(folder / "input_example.json", {"inputs": table, "params": params})
    served = {"dataframe_split": table, "params": params}
    write_json(folder / "serving_input_example.json", served)
    return {
        "artifact_path": "input_example.json",
        "serving_input_path": "serving_input_example.json",
        "type": "dataframe",
        "pandas_orient": "split",
        "params": "true",
    }
