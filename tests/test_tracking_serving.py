"""A packaged model as MLflow loads it: what it answers, and what it refuses."""

from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import yaml
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import PyFuncModel

# What follows each of a, b and c: `packaged_chain` is this table.
CHAIN = np.array([[0.1, 0.7, 0.2], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]])


@pytest.fixture(scope="module")
def served(packaged_chain: Path) -> PyFuncModel:
    return mlflow.pyfunc.load_model(str(packaged_chain))


def answers(served: PyFuncModel, *prompts: object, **params: object) -> list[dict]:
    return served.predict(pd.DataFrame({"prompt": prompts}), params=params).to_dict("records")


def test_the_next_tokens_have_the_models_probabilities(served: PyFuncModel):
    first, second = answers(served, "ab", "a", count=2)
    assert first["next_tokens"] == [
        {"token": "c", "id": 2, "probability": pytest.approx(0.6)},
        {"token": "a", "id": 0, "probability": pytest.approx(0.2)},
    ]
    assert [told["token"] for told in second["next_tokens"]] == ["b", "c"]


def test_without_temperature_the_most_probable_follows(served: PyFuncModel):
    (answer,) = answers(served, "a", temperature=0, max_new_tokens=5)
    assert answer["continuations"] == ["bcabc"]


def test_samples_follow_the_models_probabilities(served: PyFuncModel):
    (answer,) = answers(served, "a", temperature=1, samples=2000, max_new_tokens=1)
    shares = [answer["continuations"].count(letter) / 2000 for letter in "abc"]
    np.testing.assert_allclose(shares, CHAIN[0], atol=0.04)  # four standard deviations
    (answer,) = answers(served, "a", temperature=1, samples=200, max_new_tokens=1, top_k=2)
    assert set(answer["continuations"]) == {"b", "c"}


def test_the_seed_decides_and_a_row_does_not_depend_on_others(served: PyFuncModel):
    asked = {"temperature": 1, "samples": 2, "seed": 3}
    alone = answers(served, "b", **asked)
    assert answers(served, "a", "b", **asked)[1:] == alone
    assert answers(served, "b", **{**asked, "seed": 4}) != alone


@pytest.mark.parametrize(
    ("prompts", "params", "told"),
    [
        (["a"], {"temperature": -1}, "temperature is -1.0, but must be at least 0"),
        (["a"], {"temperature": float("nan")}, "temperature is nan, but must be a finite number"),
        (["a"], {"temperature": "hot"}, "Can not safely convert .*hot"),
        (["a"], {"top_p": 0}, "top_p is 0.0, but must be above 0"),
        (["a"], {"top_k": 1.5}, "Can not safely convert .*1.5"),
        (["a"], {"count": -1}, "count is -1, but must be at least 0"),
        (["a"], {"temprature": 1}, r"Unrecognized params \['temprature'\]; known are max_new"),
        (["a"], {"samples": 10, "max_new_tokens": 1001}, "10,010 new tokens .* 10,000 at most"),
        (["a"], {"temperature": 0.0, "samples": 0, "max_new_tokens": 10_001}, "10,000 at most"),
        (["a" * 10_001], {}, "a prompt has 10,001 characters; 10,000 at most"),
        (["a"] * 65, {}, "65 prompts were given; give 1 to 64"),
        (["a", None], {}, "a prompt is nan, but must be a string"),
        ([5], {}, "Incompatible input types for column prompt"),
        ([""], {}, "the prompt has 0 tokens but the model reads 1"),
        (["xyz"], {}, "'x'"),
    ],
)
def test_bad_input_is_refused_with_a_reason(served: PyFuncModel, prompts, params, told: str):
    with pytest.raises(MlflowException, match=told) as refused:
        answers(served, *prompts, **params)
    assert refused.value.get_http_status_code() == 400


@pytest.mark.parametrize("table", [{"text": ["a"]}, {"prompt": np.array([], dtype=object)}])
def test_a_table_without_prompts_is_refused(served: PyFuncModel, table):
    with pytest.raises(MlflowException, match=r"missing inputs \['prompt'\]|0 prompts") as refused:
        served.predict(pd.DataFrame(table))
    assert refused.value.get_http_status_code() == 400


def test_the_folder_says_what_goes_in_and_shows_an_example(
    packaged_chain: Path, served: PyFuncModel
):
    signature = served.metadata.signature
    assert signature.inputs.to_dict() == [{"type": "string", "name": "prompt", "required": True}]
    assert [column.name for column in signature.outputs] == ["continuations", "next_tokens"]
    assert [param.name for param in signature.params][:2] == ["max_new_tokens", "temperature"]
    assert list(served.metadata.load_input_example(str(packaged_chain))) == ["prompt"]
    assert served.metadata.load_input_example_params(str(packaged_chain))["samples"] == 1


def test_the_folder_holds_no_pickle_and_names_exact_versions_without_a_host(
    packaged_chain: Path,
):
    folder = packaged_chain
    files = {path for path in folder.rglob("*") if path.is_file()}
    assert {path.suffix for path in files - set((folder / "code").rglob("*"))} == {
        *("", ".safetensors", ".sha256", ".json", ".txt", ".yaml")
    }
    code = {path.suffix for path in (folder / "code").rglob("*") if path.is_file()}
    assert code == {".py", ".css", ".html", ".md"}
    lines = (folder / "requirements.txt").read_text().splitlines()
    assert all(len(line.split("==")) == 2 and "+" not in line for line in lines)
    assert yaml.safe_load((folder / "python_env.yaml").read_text())["dependencies"] == [
        "-r requirements.txt"
    ]
