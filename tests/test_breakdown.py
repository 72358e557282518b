"""Losses by place and by frequency, and calibration, beside counting window by window."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from builders import windows_over

from neural_ngram.evaluation.breakdown import (
    calibration,
    calibration_error,
    loss_by_frequency,
    loss_by_position,
)
from neural_ngram.evaluation.scoring import Scores
from neural_ngram.tokens.windows import Windows

BANDS = [0, 1, 2, 4, 8, 16, 32, 64, 128]


def part(seed: int, *lengths: int, pad: int | None = 0) -> tuple[Windows, Scores]:
    """Documents of these lengths over 9 tokens, rare ones among them, and made-up scores."""
    draws = np.random.default_rng(seed)
    ids = [np.minimum(draws.geometric(0.5, length), 8) for length in lengths]
    windows = replace(windows_over(ids, 2, 9, pad), bos=0)
    N = len(windows)
    confidences = draws.uniform(0.0, 1.0, N)
    return windows, Scores(
        np.log(draws.uniform(0.1, 1.0, N)),
        draws.random(N) < 0.5,
        confidences,
        np.arange(N),
        np.ones(N, int),
    )


def gathered(numbers: list[int], scores: Scores) -> dict[int, list[float]]:
    """The losses of each band, found one window at a time."""
    found = defaultdict(list)
    for number, log_p in zip(numbers, scores.log_probabilities.tolist(), strict=True):
        found[BANDS[bisect_right(BANDS, number) - 1]].append(-log_p)
    return found


def check(table: pd.DataFrame, first: str, expected: dict[str, dict[int, list[float]]]) -> None:
    assert table[first].tolist() == sorted(set().union(*expected.values()))
    for row in table.to_dict("records"):
        for name, found in expected.items():
            losses = found.get(row[first], [])
            assert row[f"{name}_tokens"] == len(losses)
            if losses:
                assert row[f"{name}_loss_nats"] == pytest.approx(np.mean(losses))
            else:
                assert np.isnan(row[f"{name}_loss_nats"])


@pytest.mark.parametrize("pad", [0, None])
def test_places_are_counted_from_the_first_target_of_each_document(pad):
    lengths = {"train": (5, 40, 3), "validation": (20, 2 if pad == 0 else 4)}
    parts = {name: part(n, *each, pad=pad) for n, (name, each) in enumerate(lengths.items())}
    lost = 0 if pad == 0 else 2
    expected = {
        name: gathered([n for of in lengths[name] for n in range(1, of - lost + 1)], scores)
        for name, (_, scores) in parts.items()
    }
    check(loss_by_position(parts), "first_place", expected)


def test_frequencies_are_those_of_the_targets_of_train():
    parts = {"train": part(1, 30, 50), "validation": part(2, 60)}
    targets = parts["train"][0].targets().tolist()
    expected = {
        name: gathered([targets.count(t) for t in windows.targets().tolist()], scores)
        for name, (windows, scores) in parts.items()
    }
    check(loss_by_frequency(parts), "least_count", expected)


def test_a_token_that_train_lacks_is_in_the_band_of_0():
    train, other = part(1, 8), part(2, 3)
    other[0].tokens[-1] = 8
    train[0].tokens[train[0].tokens == 8] = 1
    table = loss_by_frequency({"train": train, "validation": other})
    assert table["least_count"][0] == 0
    assert table["train_tokens"][0] == 0
    assert table["validation_tokens"][0] >= 1


def test_calibration_compares_probability_with_how_often_the_token_came():
    confidences = np.array([0.05, 0.09, 0.5, 0.55, 0.59, 1.0])
    hits = np.array([False, True, True, False, True, True])
    table = calibration(Scores(np.zeros(6), hits, confidences, np.arange(6), np.ones(6, int)))
    assert table["from"].tolist() == [0.0, 0.5, 0.9]
    assert table["to"].tolist() == [0.1, 0.6, 1.0]
    assert table["tokens"].tolist() == [2, 3, 1]
    assert table["predicted"].tolist() == pytest.approx([0.07, 1.64 / 3, 1.0])
    assert table["observed"].tolist() == pytest.approx([0.5, 2 / 3, 1.0])
    # 2/6 * 0.43 + 3/6 * 0.12 + 1/6 * 0
    assert calibration_error(table) == pytest.approx(2 / 6 * 0.43 + 3 / 6 * 0.12)


def test_a_model_that_is_right_as_often_as_it_says_has_almost_no_error():
    draws = np.random.default_rng(0)
    confidences = draws.uniform(0, 1, 200_000)
    hits = draws.random(200_000) < confidences
    assert (
        calibration_error(
            calibration(
                Scores(
                    np.zeros(200_000), hits, confidences, np.arange(200_000), np.ones(200_000, int)
                )
            )
        )
        < 0.01
    )


def test_every_token_stands_in_one_row():
    parts = {"train": part(3, 30, 9), "validation": part(4, 17)}
    for table in (loss_by_position(parts), loss_by_frequency(parts)):
        assert table["train_tokens"].sum() == 39
        assert table["validation_tokens"].sum() == 17
    assert calibration(parts["train"][1])["tokens"].sum() == 39
