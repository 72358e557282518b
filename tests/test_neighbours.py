"""Tokens that lie close together."""

import numpy as np
import pytest

from neural_ngram.errors import ModelError
from neural_ngram.export.neighbours import nearest, principal_plane


def test_the_nearest_points_most_nearly_the_same_way():
    embedding = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]])
    found = nearest(embedding, 0, 4)
    assert [neighbour.token for neighbour in found] == [1, 2, 4, 3]
    assert found[-1].cosine == pytest.approx(-1)
    assert found[1].distance == pytest.approx(2**0.5)


def test_a_token_outside_the_vocabulary_is_refused():
    with pytest.raises(ModelError, match="token 7 is outside the vocabulary of 2"):
        nearest(np.eye(2), 7, 1)


def test_two_dimensions_stay_as_they_are():
    embedding = np.array([[1.0, 2.0], [3.0, 4.0]])
    plane, share = principal_plane(embedding)
    assert share == 1
    np.testing.assert_array_equal(plane, embedding)


def test_the_plane_keeps_distances_of_flat_points_and_most_of_the_variance():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(50, 2)) @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    plane, share = principal_plane(flat)
    assert share == pytest.approx(1)
    np.testing.assert_allclose(
        np.linalg.norm(plane[3] - plane[9]), np.linalg.norm(flat[3] - flat[9])
    )
    assert principal_plane(rng.normal(size=(50, 6)))[1] < 0.9


def test_one_dimension_is_a_line():
    plane, _ = principal_plane(np.array([[1.0], [2.0]]))
    assert plane.tolist() == [[1, 0], [2, 0]]
