"""What the pictures show, read back from them."""

import numpy as np

from neural_ngram.charts import decomposition_chart, embedding_chart, range_chart
from neural_ngram.evaluation import decomposition


def test_bars_of_the_parts_end_where_the_loss_lies():
    mixed = {"half": {"loss_nats": 1.4}, "tuned": {"loss_nats": 1.35, "model_weight": 0.7}}
    losses = {"train": 1.25, "validation": 1.5}
    parts = decomposition(floor=0.5, losses=losses, rival=1.75, mixed=mixed, cause="widths")
    (axes,) = decomposition_chart(parts).axes
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    expected = [(0, 0.5), (0.5, 0.75), (1.25, 0.25), (0, 1.75), (0, 1.4), (0, 1.35)]
    np.testing.assert_allclose(bars, expected)
    told = [text.get_text().strip() for text in axes.texts]
    assert told == ["1.500", "1.750", "1.400", "1.350"]


def test_each_token_stands_at_its_place_whatever_its_label_holds(tmp_path):
    places = np.array([[0.0, 1.0], [2.0, 3.0], [-1.0, 0.5]])
    figure = embedding_chart(places, ["a", "$x$", "_$"], 0.5)
    (axes,) = figure.axes
    (points,) = axes.collections
    np.testing.assert_array_equal(points.get_offsets(), places)
    assert [text.xy for text in axes.texts] == [tuple(place) for place in places]
    figure.savefig(tmp_path / "embedding.png")  # a label that were a formula would fail here
    assert "3 tokens; the plane keeps 50%" in axes.get_title()


def test_a_range_test_shows_every_loss_and_the_suggestion():
    rates, losses = np.geomspace(1e-4, 1, 5), np.array([3.0, 2.9, 2.5, 2.4, 9.0])
    (axes,) = range_chart(rates, losses, losses - 0.1, 0.02).axes
    raw, smoothed, line = axes.lines
    np.testing.assert_array_equal(raw.get_xydata(), np.column_stack([rates, losses]))
    np.testing.assert_array_equal(smoothed.get_ydata(), losses - 0.1)
    assert set(line.get_xdata()) == {0.02}
    assert axes.get_xscale() == "log"
