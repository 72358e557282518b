import numpy as np
import pytest
from builders import windows_over
from hypothesis import given, settings
from hypothesis import strategies as st

from neural_ngram.artifacts import read_tensors, write_tensors
from neural_ngram.errors import ArtifactError
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.ngram.storage import load_kneser_ney, save_kneser_ney

EOS = 1


def ended(documents, context_length, pad=0):
    return windows_over([[*ids, EOS] for ids in documents], context_length, 6, pad)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.integers(2, 5), min_size=3, max_size=9), min_size=1, max_size=8),
    st.integers(1, 3),
    st.sampled_from([0, EOS, None]),
)
def test_a_model_comes_back_as_it_was_saved(tmp_path_factory, documents, order, pad):
    path = tmp_path_factory.mktemp("model") / "new" / "kneser_ney.safetensors"
    windows = ended(documents, 3, pad)
    model = KneserNey.fit(windows, vocabulary_size=6, order=order)
    save_kneser_ney(model, path)
    loaded = load_kneser_ney(path)
    assert (loaded.order, loaded.vocabulary_size, loaded.bos) == (order, 6, pad)
    assert loaded.discounts == model.discounts
    found, expected = loaded.log_probabilities(windows), model.log_probabilities(windows)
    np.testing.assert_array_equal(found, expected)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "kneser_ney.safetensors"
    windows = ended([[2, 3, 4], [3, 3], [5, 2, 3]], 2)
    save_kneser_ney(KneserNey.fit(windows, vocabulary_size=6, order=3), path)
    return path


def test_the_same_model_gives_the_same_bytes(saved, tmp_path):
    save_kneser_ney(load_kneser_ney(saved), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_a_missing_file_is_named(saved):
    saved.unlink()
    with pytest.raises(ArtifactError, match=r"kneser_ney.safetensors is missing"):
        load_kneser_ney(saved)


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_a_truncated_file_is_named(saved, kept):
    saved.write_bytes(saved.read_bytes()[:kept])
    with pytest.raises(ArtifactError, match=r"kneser_ney.safetensors cannot be read"):
        load_kneser_ney(saved)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"vocabulary_size": 5}, "a token that does not exist"),
        ({"vocabulary_size": True}, "vocabulary size is True"),
        ({"vocabulary_size": None}, "vocabulary size is None"),
        ({"bos": 6}, "BOS 6 is outside"),
        ({"bos": -1}, "BOS -1 is outside"),
        ({"discounts": []}, "no discounts"),
        ({"discounts": None}, "discounts are wrong"),
        ({"discounts": [{}, {}, {}]}, "discounts are wrong"),
        ({"discounts": [3, 4, 5]}, "discounts are wrong"),
        ({"discounts": [{"one": 2, "two": 1, "more": 1}] * 3}, "are out of range"),
        ({"discounts": [{"one": "1", "two": 1, "more": 1}] * 3}, "discounts are wrong"),
        ({"discounts": [{"one": 1, "two": 1, "more": 1}] * 2}, "belongs to no order"),
        ({"discounts": [{"one": 1, "two": 1, "more": 1}] * 4}, "contexts of order 4"),
    ],
)
def test_a_wrong_description_is_refused(saved, change, complaint):
    arrays, described = read_tensors(saved)
    write_tensors(saved, arrays, {**described, **change})
    with pytest.raises(ArtifactError, match=complaint):
        load_kneser_ney(saved)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("2.grams", lambda keys: keys[::-1].copy(), "not sorted and distinct"),
        ("2.grams", lambda keys: keys + (np.uint64(9) << np.uint64(32)), "that does not exist"),
        ("2.grams", lambda keys: keys[:-1].copy(), "not one count"),
        ("2.contexts", lambda keys: keys[:-1].copy(), "that does not exist"),
        ("2.contexts", lambda keys: np.insert(keys, 1, EOS), "a context has no n-gram"),
        ("1.contexts", lambda keys: keys + 1, "single tokens have a context"),
        ("1.counts", lambda counts: counts * 0, "not one count of at least 1"),
        ("1.counts", lambda counts: counts.astype(np.int32), "not int64"),
        ("1.counts", lambda counts: counts[:, None].copy(), "not int64"),
    ],
)
def test_counts_that_cannot_be_are_refused(saved, name, change, complaint):
    arrays, described = read_tensors(saved)
    write_tensors(saved, {**arrays, name: change(arrays[name])}, described)
    with pytest.raises(ArtifactError, match=complaint):
        load_kneser_ney(saved)
