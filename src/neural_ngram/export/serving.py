"""A model as MLflow serves it: prompts in, continuations and next-token probabilities out.

`mlflow models serve` loads the folder that `package` wrote through `_load_pyfunc`, from the copy of
this package's code beside it; nothing is unpickled. Invalid requests are answered with status 400
and one reason. MLflow itself would ignore a param that the signature does not name.
"""

import logging
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from neural_ngram.errors import NeuralNgramError
from neural_ngram.generation.trained import Trained, load
from neural_ngram.settings import GenerationSettings, read_group

__all__ = ["PARAMETERS", "Served"]

# name: (MLflow's name of the type, default); `count` is how many next tokens are returned
PARAMETERS: dict[str, tuple[str, Any]] = {
    **{
        setting.name: ("double" if setting.type is float else "long", setting.default)
        for setting in fields(GenerationSettings)
        if setting.name != "prompt"
    },
    "samples": ("long", 1),
    "count": ("long", 10),
}
MOST_PROMPTS = 64
MOST_CHARACTERS = 10_000
MOST_NEW_TOKENS = 10_000


class Served:
    """The model object that MLflow calls."""

    def __init__(self, trained: Trained) -> None:
        self.trained = trained

    def predict(self, data: pd.DataFrame, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """One row per prompt: its continuations, and the most probable next tokens.

        Each row is sampled from the same seed, so that it does not depend on the others.

        Raises MlflowException, which is answered with status 400, for a bad prompt or param.
        """
        given = {name: default for name, (_, default) in PARAMETERS.items()} | dict(params or {})
        try:
            asked = _checked(list(data["prompt"]), given)
            return pd.DataFrame([self._answer(each, given["count"]) for each in asked])
        except NeuralNgramError as problem:
            raise _refused(str(problem)) from problem

    def _answer(self, asked: GenerationSettings, count: int) -> dict[str, Any]:
        decode, prompt = self.trained.tokenizer.decode, asked.prompt
        return {
            "continuations": [decode(each.ids) for each in self.trained.samples(prompt, asked)],
            "next_tokens": [
                {"token": each.text, "id": each.token, "probability": each.probability}
                for each in self.trained.next_tokens(prompt, count)
            ],
        }


def _load_pyfunc(folder: str) -> Served:
    """The model of a packaged folder; MLflow looks for this name."""
    logging.getLogger("mlflow.models.utils").addFilter(_no_unknown_params)
    _refuse_deep_json()
    return Served(load(Path(folder) / "model.safetensors", Path(folder)))


def _refuse_deep_json() -> None:
    """Answer JSON nested too deeply for Python with status 400, where MLflow would fail."""
    server = sys.modules.get("mlflow.pyfunc.scoring_server")
    parse = getattr(server, "_parse_json_data", None)
    if server is None or parse is None:
        return

    @wraps(parse)
    def parsed(*arguments: Any, **named: Any) -> Any:
        try:
            return parse(*arguments, **named)
        except RecursionError:
            raise _refused("the JSON is nested too deeply to be read") from None

    server._parse_json_data = parsed  # type: ignore[attr-defined]


def _no_unknown_params(record: logging.LogRecord) -> bool:
    """Turn MLflow's warning that it ignores params into a refusal."""
    message = record.getMessage()
    if message.startswith("Unrecognized params") and all(name in message for name in PARAMETERS):
        unknown, _, _ = message.partition(" are ignored")
        raise _refused(f"{unknown}; known are {', '.join(PARAMETERS)}")
    return True


def _checked(prompts: list[Any], given: Mapping[str, Any]) -> list[GenerationSettings]:
    """What is asked for each prompt."""
    if not 1 <= len(prompts) <= MOST_PROMPTS:
        raise _refused(f"{len(prompts)} prompts were given; give 1 to {MOST_PROMPTS}")
    settings = {name: value for name, value in given.items() if name != "count"}
    for prompt in prompts:
        if not isinstance(prompt, str):
            raise _refused(f"a prompt is {prompt!r}, but must be a string")
        if len(prompt) > MOST_CHARACTERS:
            raise _refused(f"a prompt has {len(prompt):,} characters; {MOST_CHARACTERS:,} at most")
    asked = [read_group(GenerationSettings, {"prompt": p, **settings}) for p in prompts]
    tokens = len(prompts) * max(1, given["samples"]) * given["max_new_tokens"]
    if tokens > MOST_NEW_TOKENS:
        raise _refused(f"{tokens:,} new tokens were asked for; {MOST_NEW_TOKENS:,} at most")
    if given["count"] < 0:
        raise _refused(f"count is {given['count']}, but must be at least 0")
    return asked


def _refused(reason: str) -> MlflowException:
    return MlflowException(reason, error_code=INVALID_PARAMETER_VALUE)
