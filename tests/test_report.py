"""The page of a run: what stands in it, and what cannot get out of or into it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import vl_convert

from neural_ngram.cli.main import main
from neural_ngram.evaluation.decomposition import Decomposition
from neural_ngram.export.page import MOST_TOKENS, Measured, drawing_library, embedding_map, render

LIBRARY = vl_convert.javascript_bundle()
ROOT = Path(__file__).parents[1]
HOSTILE = "</script><script>document.title = 'broken'</script><img src=x onerror=alert(1)>"


def measured() -> Measured:
    """A made run, with hostile text wherever text of a corpus can stand."""
    losses = {"train_loss_nats": [2.0, 1.0], "validation_loss_nats": [2.0, 1.5]}
    part = {"loss_nats": 1.5, "perplexity": 4.48, "bits_per_byte": 2.25, "accuracy": 0.5}
    shares = {"same_text_in_train": 0.125, "near_duplicate_in_train": 0.25}
    plane = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return Measured(
        name=f"corpus {HOSTILE}",
        parameters=1234,
        figures={"validation": part | {"tokens": 4558, "windows_seen_in_train": 0.0625}},
        split={
            "manifest_sha256": "here",
            "held_out": True,
            "leakage": {"validation": shares | {"character_windows_in_train": {"16": 0.375}}},
        },
        test_evaluations=[{"corpus_sha256": "here"}, {"corpus_sha256": "elsewhere"}],
        samples={"continuations": [{"method": "greedy", "text": HOSTILE, "cycle": 7}]},
        settings={"boundary.mode": "enforced", "generation.prompt": HOSTILE},
        evaluations=pd.DataFrame({"step": [0, 10], **losses}),
        parts=Decomposition(
            floor=0.5,
            excess=0.5,
            generalization_gap=0.5,
            model=1.5,
            baseline=1.4,
            equally_interpolated=1.3,
            interpolated=1.2,
            model_weight=0.5,
            cause=HOSTILE,
        ),
        positions=pd.DataFrame({"first_place": [1, 2], **losses}),
        frequencies=pd.DataFrame({"least_count": [0, 1], **losses}),
        calibration=pd.DataFrame(
            {"tokens": [3, 4], "predicted": [0.1, 0.6], "observed": [0.2, 0.5]}
        ),
        entropies=pd.DataFrame({"k": [0, 1], "entropy_nats": [2.0, 0.5], "contexts": [1, 9]}),
        embedding=embedding_map(plane, 0.75, ["a", HOSTILE, "␣b"], np.array([5, 9, 1])),
    )


def own(page: str) -> str:
    """The page without the library of charts, which knows tags and names of its own."""
    return page.replace(LIBRARY, "")


def specifications(page: str) -> dict:
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_text_of_the_corpus_is_never_markup():
    page = own(render(measured(), LIBRARY))
    assert "<script>document.title" not in page
    assert "<img" not in page
    assert page.count("</script>") == 3
    assert HOSTILE in json.dumps(specifications(page), ensure_ascii=False)


def test_the_page_names_no_address_to_load_from():
    page = own(render(measured(), LIBRARY))
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=\"(?!data:)", page)
    assert set(re.findall(r"https?://[^\"/]+", page)) <= {"https://vega.github.io"}
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    "text", ["1.500", "4.48", "2.250", "50.0", "1.400", "12.50 %", "25.00 %", "37.50 %", "6.25 %"]
)
def test_figures_stand_on_the_page(text: str):
    assert f">{text}<" in render(measured(), LIBRARY)


def test_test_evaluations_are_counted_for_this_split_and_for_all():
    counts = re.findall(r"Test evaluations.*?>(\d+)</td>", render(measured(), LIBRARY))
    assert counts == ["1", "2"]


def test_a_loss_on_test_is_shown_only_when_it_was_unsealed():
    assert "on test, evaluation" not in render(measured(), LIBRARY)
    unsealed = measured().figures | {"test": {"loss_nats": 1.75, "evaluation": 3}}
    page = render(replace(measured(), figures=unsealed), LIBRARY)
    assert "on test, evaluation no. 3" in page
    assert ">1.750<" in page


def test_there_is_a_chart_in_each_place():
    page = render(measured(), LIBRARY)
    places = re.findall(r'<div class="chart" id="(\w+)">', page)
    assert sorted(places) == sorted(specifications(page))


def test_the_map_shows_the_most_frequent_tokens():
    V = MOST_TOKENS + 500
    labels = [str(token) for token in range(V)]
    found = embedding_map(np.zeros((V, 2)), 1.0, labels, np.arange(V)).tokens
    assert found["token"].tolist() == labels[:499:-1]


def test_without_a_run_one_line_says_what_to_do(tmp_path, monkeypatch, capsys):
    for name in ("dvc.yaml", "params.yaml", "conf", ".dvc"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("run `dvc repro` first")


def test_the_library_of_charts_is_bundled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bundled = list[str]()
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: bundled.append("") or LIBRARY)
    assert drawing_library(tmp_path) == drawing_library(tmp_path) == LIBRARY
    assert len(bundled) == 1
