import numpy as np
import pytest
from builders import windows_over

from neural_ngram.errors import ModelError
from neural_ngram.export.arpa import export_arpa
from neural_ngram.ngram.kneser_ney import KneserNey

BOS, EOS = 0, 1


def test_the_file_of_the_model_worked_by_hand(tmp_path):
    """The documents are "a b" and "a a"; test_ngram_kneser_ney.py works out the probabilities."""
    windows = windows_over([[2, 3, EOS], [2, 2, EOS]], 1, 4, pad=BOS)
    model = KneserNey.fit(windows, vocabulary_size=4, order=2)
    export_arpa(model, tmp_path / "model.arpa", tokens=["<s>", "</s>", "a", "b"])
    expected = f"""\\data\\
ngram 1=5
ngram 2=5

\\1-grams:
-99\t<s>\t{np.log10(1 / 2):.7g}
{np.log10(11 / 30):.7g}\t</s>\t0
{np.log10(11 / 30):.7g}\ta\t{np.log10(1 / 2):.7g}
{np.log10(8 / 30):.7g}\tb\t{np.log10(1 / 2):.7g}
-99\t<unk>

\\2-grams:
{np.log10(20.5 / 30):.7g}\t<s> a
{np.log10(10.5 / 30):.7g}\ta </s>
{np.log10(10.5 / 30):.7g}\ta a
{np.log10(9 / 30):.7g}\ta b
{np.log10(20.5 / 30):.7g}\tb </s>

\\end\\
"""
    found = (tmp_path / "model.arpa").read_text(encoding="utf-8")
    assert found == expected


def test_the_beginning_of_every_gram_has_a_line_of_its_own(tmp_path):
    windows = windows_over([[2, 3, 4, 5, 6, EOS], [5, 4, 3, 2, 3, EOS]], 3, 7, pad=None)
    model = KneserNey.fit(windows, vocabulary_size=7, order=4)
    export_arpa(model, tmp_path / "model.arpa", tokens=["<s>", "</s>", *"abcde"])
    grams = {
        tuple(line.split("\t")[1].split(" "))
        for line in (tmp_path / "model.arpa").read_text().splitlines()
        if "\t" in line
    }
    assert ("a", "b", "c", "d") in grams
    assert {gram[:-1] for gram in grams if len(gram) > 1} <= grams
    assert {gram[1:] for gram in grams if len(gram) > 1} <= grams


def test_a_model_of_single_tokens_has_no_backoff(tmp_path):
    model = KneserNey.fit(windows_over([[2, 2]], 1, 3, pad=BOS), vocabulary_size=3, order=1)
    export_arpa(model, tmp_path / "model.arpa", tokens=["<s>", "</s>", "a"])
    assert "\ta\n" in (tmp_path / "model.arpa").read_text()


@pytest.mark.parametrize(
    ("tokens", "complaint"),
    [
        (["<s>", "</s>", "a"], "3 strings were given for a model of 4"),
        (["<s>", "</s>", "a", "b c"], "token 3 is written 'b c'"),
        (["<s>", "</s>", "a", ""], "token 3 is written ''"),
        (["<s>", "</s>", "a", "a"], "two tokens are written 'a'"),
        (["^", "</s>", "a", "<s>"], "two tokens are written '<s>'"),
    ],
)
def test_strings_that_an_arpa_file_cannot_hold_are_refused(tmp_path, tokens, complaint):
    model = KneserNey.fit(windows_over([[2, 3]], 1, 4, pad=BOS), vocabulary_size=4, order=2)
    with pytest.raises(ModelError, match=complaint):
        export_arpa(model, tmp_path / "model.arpa", tokens=tokens)
    assert not (tmp_path / "model.arpa").exists()


@pytest.mark.parametrize("pad", [BOS, EOS, None], ids=["BOS", "BOS is EOS", "no BOS"])
def test_kenlm_scores_the_file_as_we_do(tmp_path, pad):
    kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed: pip install kenlm")
    rng = np.random.default_rng(7)
    low = 1 if pad == EOS else 2
    documents = [[*(low + 1 + (rng.zipf(1.6, 12) % 30)).tolist(), EOS] for _ in range(400)]
    tokens = ["<s>", "</s>", "<unk>", *(f"w{i}" for i in range(3, 40))]
    train = windows_over(documents[:300], 3, 40, pad)
    model = KneserNey.fit(train, vocabulary_size=40, order=4)
    export_arpa(model, tmp_path / "model.arpa", tokens=tokens)
    theirs = kenlm.Model(str(tmp_path / "model.arpa"))
    assert theirs.order == 4
    for document in documents[300:]:
        windows = windows_over([document], 3, 40, pad)
        ours = model.log_probabilities(windows) / np.log(10)
        text = " ".join(tokens[token] for token in document[:-1])
        scores = [s for s, _, _ in theirs.full_scores(text, bos=pad is not None, eos=True)]
        np.testing.assert_allclose(ours, scores[len(document) - len(ours) :], atol=1e-5)
