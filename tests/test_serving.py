"""`mlflow models serve` answers over the newest version of the registered model."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from patience import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(served, store: Path) -> Iterator[str]:
    command = "mlflow models serve -m models:/neural-ngram@newest --env-manager local"
    tracked = {"MLFLOW_TRACKING_URI": "sqlite:///mlflow.db"}
    with served(command, "/ping", store, tracked) as address:
        yield f"{address}/invocations"


def ask(address: str, body: object) -> tuple[int, dict]:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(address, sent, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)


def prompts(*texts: object, **params: object) -> dict:
    return {
        "dataframe_split": {"columns": ["prompt"], "data": [[text] for text in texts]},
        "params": params,
    }


def test_a_prompt_is_answered_with_continuations_and_probabilities(server: str):
    status, answer = ask(server, prompts("ab", samples=2, count=3))
    assert status == 200
    (row,) = answer["predictions"]
    assert len(row["continuations"]) == 2
    assert row["continuations"][0] != row["continuations"][1]
    assert [token["token"] for token in row["next_tokens"]] == ["c", "a", "b"]
    probabilities = [token["probability"] for token in row["next_tokens"]]
    assert probabilities == pytest.approx([0.6, 0.2, 0.2])


def test_the_example_that_is_kept_with_the_model_works(server: str, store: Path):
    example, _ = store.glob("artifacts/models/*/artifacts/serving_input_example.json")
    status, answer = ask(server, json.loads(example.read_text()))
    assert status == 200
    assert len(answer["predictions"][0]["next_tokens"]) == 3


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"dataframe_records": [{"text": "At night"}]}, "missing inputs ['prompt']"),
        (prompts(5), "a prompt is 5, but must be a string"),
        (prompts(None), "a prompt is None, but must be a string"),
        (prompts(), "0 prompts were given"),
        (prompts("a" * 10_001), "10,000 at most"),
        (prompts("a", temperature=-1), "temperature is -1.0, but must be at least 0"),
        (prompts("a", temperature="hot"), "Can not safely convert"),
        (prompts("a", temprature=1), "Unrecognized params ['temprature']"),
        ({"params": {}}, "exactly one of"),
        ("At night", "JSON dictionary"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"inputs": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
        (b'{"params": {"top_k": ' + b'{"a":' * 200_000, "nested too deeply"),
    ],
)
def test_bad_input_is_refused_with_a_reason(server: str, body: object, told: str):
    status, answer = ask(server, body)
    assert 400 <= status < 500
    assert told in answer["message"]
    assert "Traceback" not in json.dumps(answer)
