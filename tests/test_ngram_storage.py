import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural_ngram.errors import ArtifactError
from neural_ngram.ngram import KneserNey, load_kneser_ney, save_kneser_ney
from neural_ngram.windows import Windows, build_stream

EOS = 1


def windows_over(documents, context_length, pad=0):
    tokens, offsets = build_stream(
        [np.array([*ids, EOS]) for ids in documents],
        context_length=context_length,
        vocabulary_size=6,
        pad=pad,
    )
    return Windows(tokens=tokens, offsets=offsets, context_length=context_length, bos=pad)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.integers(2, 5), min_size=3, max_size=9), min_size=1, max_size=8),
    st.integers(1, 3),
    st.sampled_from([0, EOS, None]),
)
def test_a_model_comes_back_as_it_was_saved(tmp_path_factory, documents, order, pad):
    folder = tmp_path_factory.mktemp("model") / "new" / "kneser_ney"
    windows = windows_over(documents, 3, pad)
    model = KneserNey.fit(windows, vocabulary_size=6, order=order)
    save_kneser_ney(model, folder)
    loaded = load_kneser_ney(folder)
    assert (loaded.order, loaded.vocabulary_size, loaded.bos) == (order, 6, pad)
    assert loaded.discounts == model.discounts
    found, expected = loaded.log_probabilities(windows), model.log_probabilities(windows)
    np.testing.assert_array_equal(found, expected)


@pytest.fixture
def saved(tmp_path):
    windows = windows_over([[2, 3, 4], [3, 3], [5, 2, 3]], 2)
    save_kneser_ney(KneserNey.fit(windows, vocabulary_size=6, order=3), tmp_path / "model")
    return tmp_path / "model"


def test_the_same_model_gives_the_same_bytes(saved, tmp_path):
    save_kneser_ney(load_kneser_ney(saved), tmp_path / "again")
    files = sorted(path.name for path in saved.iterdir())
    assert len(files) == 3 * 3 + 1
    for name in files:
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes()


@pytest.mark.parametrize("name", ["kneser_ney.json", "1-grams.npy", "2-counts.npy"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ArtifactError, match=rf"{name} .* cannot be read"):
        load_kneser_ney(saved)


@pytest.mark.parametrize("name", ["1-contexts.npy", "3-grams.npy", "2-counts.npy"])
def test_a_truncated_file_is_named(saved, name):
    whole = (saved / name).read_bytes()
    (saved / name).write_bytes(whole[:-1])
    with pytest.raises(ArtifactError, match=rf"{name} .* SHA-256"):
        load_kneser_ney(saved)


def test_a_file_of_another_model_is_named(saved, tmp_path):
    other = KneserNey.fit(windows_over([[2, 2]], 2), vocabulary_size=6, order=3)
    save_kneser_ney(other, tmp_path / "other")
    (saved / "2-grams.npy").write_bytes((tmp_path / "other" / "2-grams.npy").read_bytes())
    with pytest.raises(ArtifactError, match=r"2-grams.npy .* SHA-256"):
        load_kneser_ney(saved)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": "kneser-ney-0"}, "format is not 'kneser-ney-1'"),
        ({"order": 0}, "order is 0"),
        ({"order": 2}, "discounts are not those of 2 orders"),
        ({"order": "3"}, "order is '3'"),
        ({"vocabulary_size": 5}, "a token that is not there"),
        ({"vocabulary_size": True}, "vocabulary_size is True"),
        ({"bos": 6}, "bos 6 is outside"),
        ({"bos": -1}, "bos is -1"),
        ({"sha256": None}, "no sha256"),
        ({"discounts": [{}, {}, {}]}, "discounts of order 1"),
        ({"discounts": [3, 4, 5]}, "discounts of order 1"),
        ({"discounts": [{"one": 2, "two": 1, "more": 1}] * 3}, "take too much"),
        ({"discounts": [{"one": "1", "two": 1, "more": 1}] * 3}, "discounts of order 1"),
    ],
)
def test_a_wrong_description_is_refused(saved, change, complaint):
    described = json.loads((saved / "kneser_ney.json").read_text())
    (saved / "kneser_ney.json").write_text(json.dumps({**described, **change}))
    with pytest.raises(ArtifactError, match=complaint):
        load_kneser_ney(saved)


@pytest.mark.parametrize("name", ["bos", "discounts", "format", "order", "sha256"])
def test_an_incomplete_description_is_refused(saved, name):
    described = json.loads((saved / "kneser_ney.json").read_text())
    del described[name]
    (saved / "kneser_ney.json").write_text(json.dumps(described))
    with pytest.raises(ArtifactError, match=name):
        load_kneser_ney(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\udcff"])
def test_a_description_that_is_none_is_refused(saved, text):
    (saved / "kneser_ney.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ArtifactError, match=r"kneser_ney.json is not part of"):
        load_kneser_ney(saved)


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("2-grams.npy", lambda keys: keys[::-1], "not sorted and distinct"),
        ("2-grams.npy", lambda keys: keys + (np.uint64(9) << np.uint64(32)), "that is not there"),
        ("2-grams.npy", lambda keys: keys[:-1], "not one a gram"),
        ("2-contexts.npy", lambda keys: keys[:-1], "that is not there"),
        ("2-contexts.npy", lambda keys: np.insert(keys, 1, EOS), "a context has no gram"),
        ("1-contexts.npy", lambda keys: keys + 1, "single tokens have a context"),
        ("1-counts.npy", lambda counts: counts * 0, "each at least 1"),
        ("1-counts.npy", lambda counts: counts.astype(np.int32), "array of int32"),
        ("1-counts.npy", lambda counts: counts[:, None], "2-dimensional array"),
        ("1-counts.npy", lambda counts: counts.astype(object), "not an array"),
    ],
)
def test_counts_that_cannot_be_are_refused_even_with_the_right_digest(
    saved, name, change, complaint
):
    np.save(saved / name, change(np.load(saved / name)), allow_pickle=True)
    described = json.loads((saved / "kneser_ney.json").read_text())
    described["sha256"][name] = hashlib.sha256((saved / name).read_bytes()).hexdigest()
    (saved / "kneser_ney.json").write_text(json.dumps(described))
    with pytest.raises(ArtifactError, match=complaint):
        load_kneser_ney(saved)
