import numpy as np
import pytest

from neural_ngram.errors import ArtifactError
from neural_ngram.model.vectors import read_word2vec

WANTED = {"cat": 4, "dog": 2, "fish": 0}


def test_reads_the_wanted_words_of_a_word2vec_file(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("4 2\ncat 1 2\ncow nonsense\ndog -0.5 1e-3\ncat 9 9\n", encoding="utf-8")
    ids, vectors = read_word2vec(file, WANTED)
    assert ids.tolist() == [4, 2]
    np.testing.assert_array_equal(vectors, [[1, 2], [-0.5, 1e-3]])


def test_reads_a_file_without_a_first_line_of_counts(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("dog 1 2 3\n", encoding="utf-8")
    assert read_word2vec(file, WANTED)[1].shape == (1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\ncat 1 x\n", "line 2"),
        ("2 2\ncat 1 2\ndog 1\n", "'dog' has 1 numbers"),
        ("1 2\ncow 1 2\n", "none of the 3 words"),
        ("", "none of the 3 words"),
    ],
)
def test_says_what_is_wrong_with_a_file(tmp_path, text, message):
    file = tmp_path / "vectors.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ArtifactError, match=message):
        read_word2vec(file, WANTED)


def test_names_a_missing_file(tmp_path):
    with pytest.raises(ArtifactError, match=r"absent.txt cannot be read"):
        read_word2vec(tmp_path / "absent.txt", WANTED)
