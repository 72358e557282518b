"""The pictures: what is drawn where, and that a picture comes of it."""

import json
import struct

import numpy as np
import pytest

from neural_ngram.evaluation.decomposition import Decomposition
from neural_ngram.export.charts import decomposition_chart, embedding_chart, png, range_chart

PARTS = Decomposition(
    floor=0.5,
    excess=0.75,
    generalization_gap=0.25,
    model=1.5,
    baseline=1.75,
    equally_interpolated=1.4,
    interpolated=1.35,
    model_weight=0.7,
    cause="widths",
)
RATES = np.geomspace(1e-4, 1, 30)
PLANE = np.array([[0.0, 1.0], [2.0, -1.0]])
LABELS = ["$река$", "<script>"]


def rows(chart) -> list[list[dict]]:
    """The data of each layer."""
    described = json.loads(chart.to_json())
    tables = described.get("datasets", {})
    data = [layer.get("data", described.get("data")) for layer in described["layer"]]
    return [tables.get(each.get("name")) or each["values"] for each in data]


def test_the_summands_are_stacked_and_the_references_stand_beside_the_model():
    bars, totals = rows(decomposition_chart(PARTS))
    assert [(bar["row"], bar["start"], bar["end"]) for bar in bars] == [
        ("model", 0, 0.5),
        ("model", 0.5, 1.25),
        ("model", 1.25, 1.5),
        ("Kneser-Ney", 0, 1.75),
        ("equal-weight interpolation", 0, 1.4),
        ("tuned interpolation", 0, 1.35),
    ]
    assert {row["row"]: row["nats"] for row in totals} == {
        "model": 1.5,
        "Kneser-Ney": 1.75,
        "equal-weight interpolation": 1.4,
        "tuned interpolation": 1.35,
    }
    assert bars[1]["meaning"] == "limited by widths"


def test_each_token_is_labelled_at_its_place_however_many_there_are():
    points, texts = rows(embedding_chart(PLANE, LABELS, 0.5))
    assert points == texts
    assert [(row["x"], row["y"], row["label"]) for row in texts] == [
        (0, 1, "$река$"),
        (2, -1, "<script>"),
    ]
    many = rows(embedding_chart(np.zeros((6000, 2)), ["a"] * 6000, 0.5))
    assert len(many[0]) == 6000


def test_the_curves_of_a_range_test_and_its_suggestion():
    batch, smoothed, rule = rows(range_chart(RATES, RATES * 3, RATES * 2, 0.01))
    assert [row["nats"] for row in batch] == pytest.approx((RATES * 3).tolist())
    assert [row["rate"] for row in smoothed] == pytest.approx(RATES.tolist())
    assert rule == [{"rate": 0.01, "curve": "suggested 0.01"}]


@pytest.mark.parametrize(
    "chart",
    [
        decomposition_chart(PARTS),
        embedding_chart(PLANE, LABELS, 0.5),
        range_chart(RATES, RATES * 3, RATES * 2, 0.01),
    ],
)
def test_a_picture_has_the_same_bytes_each_time(chart):
    picture = png(chart)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 300
    assert height > 100
    assert png(chart) == picture
