import csv
import hashlib
import itertools
import json
import math
import re
import unicodedata
from collections import Counter

import numpy as np
import pytest
import tokenizers
from hypothesis import assume, example, given
from hypothesis import settings as search
from hypothesis import strategies as st
from tokenizers import pre_tokenizers, trainers

from neural_ngram.choices.tokenizers import KINDS, Kind, isolated
from neural_ngram.corpus.reading import read_corpus
from neural_ngram.errors import ArtifactError, TokenizerError
from neural_ngram.settings import TokenizerSettings
from neural_ngram.tokens.tokenizer import learn, load, longest_stretch, merge_table, save

HARD = [
    "",
    " ",
    "\n",
    "a\r\n\n\tb",
    " " * 300,
    "x" + " " * 100 + "y",
    "\0 NUL \0",
    "family 👨‍👩‍👧‍👦 and flag 🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "e\u0301 n\u0303 Z\u0351\u036b\u0343",
    "שלום עולם مرحبا بالعالم \u202eright to left\u202c",
    "\uffff \ufeff \ufffd \U0010ffff \ue000",
    "line\u2028paragraph\u2029next\x85line\x1c\x1f",
    "На рассвете Мира приносит к реке синюю тетрадь.",
    "한국어 ひらがな 漢字 ไทย",
    "don't we'll I'VE 's 123 ½ ٣",
    "<bos> <eos> <boundary> <unk> <begin document><end document>",
    "a" * 500,
]


def bpe(size=400, **options):
    return TokenizerSettings(kind="bpe", vocabulary_size=size, **options)


def gpt2_pieces(text):
    r"""The text cut by the published pattern; `re` knows no \p{...}, so we spell it out."""
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for kind, characters in (("L", {"a", *text}), ("N", {"0", *text})):
        members = "".join(c for c in characters if unicodedata.category(c)[0] == kind)
        pattern = pattern.replace(rf"\p{{{kind}}}", members)
    return re.findall(pattern, text)


def replaced(ids, pair, new):
    """Replace `pair` from left to right; also how often."""
    result, at, times = [], 0, 0
    while at < len(ids):
        if tuple(ids[at : at + 2]) == pair:
            result.append(new)
            at, times = at + 2, times + 1
        else:
            result.append(ids[at])
            at += 1
    return result, times


def canonical_bpe(pieces, merges):
    """Sennrich, Haddow & Birch 2016, every count taken anew: [(pair, times applied)], final IDs.

    Bytes are 0..255 and the merge of rank r is 256 + r. The most frequent pair wins, then the
    smallest; a pair that stands only once is no pair to merge.
    """
    words = Counter(tuple(piece.encode()) for piece in pieces)
    learned, current = [], {word: list(word) for word in words}
    for rank in range(merges):
        counts = Counter()
        for word, ids in current.items():
            for pair in itertools.pairwise(ids):
                counts[pair] += words[word]
        pair = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if pair is None or counts[pair] < 2:
            break
        applied = 0
        for word, ids in current.items():
            current[word], times = replaced(ids, pair, 256 + rank)
            applied += times * words[word]
        learned.append((pair, applied))
    return learned, [i for piece in pieces for i in current[tuple(piece.encode())]]


def learned_pairs(tokenizer, texts):
    """[(pair, count)] with the IDs of `canonical_bpe`, read from the file's text and the table."""
    model = json.loads(tokenizer.backend.to_str())["model"]
    first = tokenizer.vocabulary_size - 256 - len(model["merges"])
    pairs = [tuple(model["vocab"][part] - first for part in merge) for merge in model["merges"]]
    table = merge_table(tokenizer, tokenizer.encode(texts))
    assert table["rank"].tolist() == list(range(len(pairs)))
    assert (table["token"] - first - 256).tolist() == list(range(len(pairs)))
    assert table[["left", "right"]].values.tolist() == model["merges"]
    return list(zip(pairs, table["count"].tolist(), strict=True))


def ids_of(tokenizer, text):
    (ids,) = tokenizer.encode([text])
    return ids.tolist()


def test_a_worked_example():
    # aaabdaaabac: aa (4 times) → X; ab and Xa twice each, and ab is the smaller → Y; XY → Z.
    tokenizer = learn(["aaabdaaabac"], bpe(size=261, pattern="none"))
    assert tokenizer.vocabulary_size == 261
    table = merge_table(tokenizer, tokenizer.encode(["aaabdaaabac"]))
    assert table.values.tolist() == [
        [0, "a", "a", 258, 2],
        [1, "a", "b", 259, 2],
        [2, "aa", "ab", 260, 2],
    ]
    assert ids_of(tokenizer, "aaabdaaabac") == [260, 2 + 100, 260, 2 + 97, 2 + 99]


REPEATS = st.lists(
    st.sampled_from(
        [
            "a",
            "aa",
            "aaaa",
            "ab",
            "abab",
            "b",
            " ",
            "  ",
            "\n",
            "'s",
            "1",
            "11",
            "é",
            "ре",
            "😀",
            "!",
        ]
    )
).map("".join)


@pytest.mark.parametrize("pattern", ["gpt2", "none"])
@search(max_examples=150)
@given(st.lists(REPEATS, max_size=6), st.integers(0, 30))
@example(["aaaa", "aaaaa", "aaaaaaa", "aaaaaaaaaaaaa", "ab"], 30)
@example(["abababab", "babababa", "aabbaabb"], 30)
def test_the_merges_their_counts_and_the_encoding_are_canonical(pattern, texts, merges):
    assume(len(set("".join(texts))) > 1)
    tokenizer = learn(texts, bpe(size=258 + merges, pattern=pattern))
    split = gpt2_pieces if pattern == "gpt2" else lambda text: [text]
    expected, final = canonical_bpe([piece for text in texts for piece in split(text)], merges)
    assert learned_pairs(tokenizer, texts) == expected
    encoded = [i - 2 for text in texts for i in ids_of(tokenizer, text)]
    assert encoded == final


@given(REPEATS, REPEATS)
def test_unseen_text_is_encoded_by_the_merges_in_order(seen, unseen):
    assume(len(set(seen)) > 1)
    tokenizer = learn([seen], bpe(size=280, pattern="none", markers="none"))
    ids = list(unseen.encode())
    for rank, (pair, _) in enumerate(learned_pairs(tokenizer, [seen])):
        ids, _ = replaced(ids, pair, 256 + rank)
    assert ids_of(tokenizer, unseen) == ids


@given(st.text(st.sampled_from("ab1é' \n\t!?sdlmtrev½Жа́漢")))
def test_the_split_is_the_published_one(text):
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    offsets = [offset for _, offset in split.pre_tokenize_str(text)]
    assert [text[start:end] for start, end in offsets] == gpt2_pieces(text)


def test_real_text_is_merged_canonically(real_data):
    sentences = read_corpus(real_data("ewt/en_ewt-ud-dev.conllu"), unit="sentence").documents
    texts = [document.text for document in sentences[:400]]
    tokenizer = learn(texts, bpe(size=258 + 120))
    expected, _ = canonical_bpe([p for text in texts for p in gpt2_pieces(text)], 120)
    assert learned_pairs(tokenizer, texts) == expected


def test_the_conditional_entropy_of_ewt_is_the_published_one(real_data):
    sentences = read_corpus(real_data("ewt/en_ewt-ud-train.conllu"), unit="sentence").documents
    texts = [document.text for document in sentences[:10_000]]
    # The published 1,108 tokens hold the bytes that occur; ours hold all 256.
    merges = 1_108 - len(set("".join(texts).encode()))
    tokenizer = learn(texts, bpe(size=256 + merges, markers="none"))
    pairs = Counter(p for ids in tokenizer.encode(texts) for p in itertools.pairwise(ids.tolist()))
    total, firsts = pairs.total(), Counter()
    for (left, _), count in pairs.items():
        firsts[left] += count
    nats = sum(n * math.log(firsts[left] / n) for (left, _), n in pairs.items()) / total
    assert total == pytest.approx(291_000, abs=500)
    assert nats == pytest.approx(3.901, abs=5e-4)


def bilingual(real_data):
    lists = json.loads(real_data("bilingual/splits.json").read_text(encoding="utf-8"))
    documents = read_corpus(real_data("bilingual/corpus.json")).documents
    return {
        name: [document.text for document in documents if document.id in lists[name]]
        for name in ("train", "validation")
    }


def test_a_whole_document_is_merged_canonically_without_a_pattern(real_data):
    texts = bilingual(real_data)["train"]
    tokenizer = learn(texts, bpe(size=258 + 200, pattern="none"))
    expected, final = canonical_bpe(texts, 200)
    assert learned_pairs(tokenizer, texts) == expected
    assert [i - 2 for text in texts for i in ids_of(tokenizer, text)] == final


def test_the_vocabulary_of_chapter_23(real_data):
    texts = bilingual(real_data)
    tokenizer = learn(texts["train"], bpe(size=266, pattern="none"))
    assert (tokenizer.vocabulary_size, tokenizer.bos, tokenizer.eos) == (266, 0, 1)
    assert tokenizer.pieces[2:258] == [bytes([byte]) for byte in range(256)]
    assert merge_table(tokenizer, [])["token"].tolist() == list(range(258, 266))
    assert ids_of(tokenizer, "At") == [67, 118]


def test_the_words_of_toy_gpt_have_their_published_ids(real_data):
    text = real_data("toy_gpt/004_analytics.txt").read_text(encoding="utf-8")
    with real_data("toy_gpt/01_vocabulary.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    tokenizer = learn([text], TokenizerSettings(kind="word", markers="none"))
    assert tokenizer.tokens == [row["token"] for row in rows]
    ids = ids_of(tokenizer, text)
    assert np.bincount(ids).tolist() == [int(row["frequency"]) for row in rows]
    assert len(ids) == 228


@pytest.fixture(scope="module", params=["gpt2", "none"])
def learned(request):
    texts = ["На рассвете Мира приносит к реке. " * 3, "don't stop the clock   at the shop\n" * 3]
    return learn(texts, bpe(size=330, pattern=request.param))


@pytest.mark.parametrize("text", HARD)
def test_hard_text_comes_back_as_it_was(learned, text):
    assert learned.decode(ids_of(learned, text)) == text
    assert learned.decode_bytes(ids_of(learned, text)) == text.encode()


@given(st.text())
def test_any_text_comes_back_as_it_was(learned, text):
    assert learned.decode(ids_of(learned, text)) == text


@given(st.binary() | st.text().map(str.encode))
@example(b"\xed\xa0\x80 half a pair, cut \xd0")
@example(b"\xff\xfe" + "реке".encode("utf-16-le"))
def test_any_bytes_come_back_as_they_were(learned, data):
    ids = learned.encode_bytes(data)
    assert ids.dtype == np.int64
    assert learned.decode_bytes(ids) == data


@given(st.text())
def test_the_bytes_of_text_are_encoded_as_the_text(learned, text):
    assert learned.encode_bytes(text.encode()).tolist() == ids_of(learned, text)


def test_broken_utf8_is_shown_as_the_replacement_character(learned):
    assert learned.decode(learned.encode_bytes(b"a\xd0b")) == "a\ufffdb"


@pytest.mark.parametrize(
    "settings",
    [bpe(), TokenizerSettings(kind="character"), TokenizerSettings(kind="word")],
    ids=["bpe", "character", "word"],
)
def test_the_file_is_understood_by_the_tokenizers_library_alone(tmp_path, settings):
    texts = [text for text in HARD if text.strip()]
    tokenizer = learn(texts, settings)
    sha256 = save(tokenizer, tmp_path)
    alone = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in HARD:
        ids = ids_of(tokenizer, text)
        assert alone.encode(text).ids == ids
        assert alone.decode(ids, skip_special_tokens=False) == tokenizer.decode(ids)
    again = load(tmp_path)
    assert (again.kind, again.tokens, again.bos) == (settings.kind, tokenizer.tokens, 0)
    assert save(again, tmp_path) == sha256


@pytest.mark.parametrize(
    ("markers", "bos", "eos", "first"),
    [("bos_eos", 0, 1, 2), ("shared", 0, 0, 1), ("none", None, None, 0)],
)
def test_markers_come_first_then_the_alphabet_in_order(markers, bos, eos, first):
    texts = ["на la la"]
    tokenizer = learn(texts, bpe(markers=markers))
    assert (tokenizer.bos, tokenizer.eos) == (bos, eos)
    assert tokenizer.pieces[: first + 256] == [b""] * first + [bytes([b]) for b in range(256)]
    for kind, alphabet in (("character", [*" alан"]), ("word", ["la", "на"])):
        settings = TokenizerSettings(kind=kind, markers=markers)
        tokenizer = learn(texts, settings)
        assert (tokenizer.kind, tokenizer.bos, tokenizer.eos) == (kind, bos, eos)
        assert tokenizer.tokens[first:] == alphabet
        tokenizer = learn(texts, TokenizerSettings(kind=kind, markers=markers, unknown=True))
        assert tokenizer.tokens[first:] == ["<unk>", *alphabet]


def test_markers_are_no_text(learned):
    assert learned.decode([0, *ids_of(learned, "река"), 1]) == "река"


@pytest.mark.parametrize("markers", ["bos_eos", "shared", "none"])
@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
def test_a_text_that_spells_a_marker_is_text(kind, markers):
    settings = {"kind": kind, "markers": markers, "pattern": "none", "vocabulary_size": 600}
    names = learn(["ab"], TokenizerSettings(**settings)).tokens[:2]
    text = " ".join([*names, "<bos> <eos> <boundary> <unk> <|endoftext|> <s> </s>"] * 9)
    tokenizer = learn([text, text], TokenizerSettings(**settings))
    ids = ids_of(tokenizer, text)
    assert tokenizer.decode(ids) == text
    assert not {tokenizer.bos, tokenizer.eos} & set(ids)
    assert len(set(tokenizer.tokens)) == tokenizer.vocabulary_size
    assert tokenizer.bos == (None if markers == "none" else 0)


def test_fewer_merges_are_found_than_asked_for():
    tokenizer = learn(["abab ab"], bpe(size=5000))
    assert tokenizer.pieces[258:] == [b"ab"]


def test_a_vocabulary_of_the_alphabet_alone_has_no_merges():
    tokenizer = learn(["abab"], bpe(size=258))
    table = merge_table(tokenizer, tokenizer.encode(["abab"]))
    assert table.columns.tolist() == ["rank", "left", "right", "token", "count"]
    assert len(table) == 0
    assert ids_of(tokenizer, "ab") == [99, 100]


@pytest.mark.parametrize(("markers", "least"), [("bos_eos", 258), ("shared", 257), ("none", 256)])
def test_a_vocabulary_below_the_alphabet_is_refused(markers, least):
    assert learn(["ab"], bpe(size=least, markers=markers)).vocabulary_size == least
    with pytest.raises(TokenizerError, match=rf"size is {least - 1}, .*need at least {least}"):
        learn(["ab"], bpe(size=least - 1, markers=markers))


@pytest.mark.parametrize("texts", [[], [""], ["aaaa", "a"]])
@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
def test_a_text_of_one_character_has_nothing_to_predict(kind, texts):
    with pytest.raises(TokenizerError, match="fewer than two distinct characters"):
        learn(texts, TokenizerSettings(kind=kind))


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(
    ("kind", "text", "stranger"), [("character", "abя", "'я'"), ("word", "ab  яб\nc", "'яб'")]
)
def test_what_train_does_not_hold_is_unknown_or_an_error(kind, text, stranger, unknown):
    # The word <unk> in train must not make the error silent.
    tokenizer = learn(["ab c <unk>"], TokenizerSettings(kind=kind, unknown=unknown))
    if unknown:
        ids = ids_of(tokenizer, text)
        assert tokenizer.tokens[tokenizer.unknown] == "<unk>"
        assert ids.count(tokenizer.unknown) == 1
        assert "<unk>" in tokenizer.decode(ids)
    else:
        assert tokenizer.unknown is None
        with pytest.raises(
            TokenizerError, match=rf"the {kind} {stranger} in text 2 .*unknown=true"
        ):
            list(tokenizer.encode(["ab", text]))


def test_the_text_with_the_unknown_word_is_numbered_across_batches():
    tokenizer = learn(["ab c"], TokenizerSettings(kind="word"))
    with pytest.raises(TokenizerError, match="'new' in text 3001"):
        list(tokenizer.encode(["ab"] * 3000 + ["new"]))


def test_words_rarer_than_asked_are_unknown():
    settings = TokenizerSettings(kind="word", minimum_frequency=2, unknown=True, markers="none")
    tokenizer = learn(["a b b", "c a"], settings)
    assert tokenizer.tokens == ["<unk>", "a", "b"]
    assert ids_of(tokenizer, "a c b") == [1, 0, 2]


@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
def test_a_lone_surrogate_is_no_text(kind):
    tokenizer = learn(["ab c"], TokenizerSettings(kind=kind, unknown=True))
    with pytest.raises(TokenizerError, match=r"text 2 contains the lone surrogate .* character 1"):
        list(tokenizer.encode(["b", "a\udcff"]))


@given(st.text(), st.sampled_from(["character", "word"]))
@example("a\x1cb\x1fc\x85d\xa0e\u2028f\u200bg\u180eh\ufeff", "word")
def test_train_itself_can_always_be_encoded(text, kind):
    train = [text, "a b"]
    tokenizer = learn(train, TokenizerSettings(kind=kind))
    decoded = [tokenizer.decode(ids) for ids in tokenizer.encode(train)]
    if kind == "character":
        assert decoded == train
    else:
        assert [re.sub(r"\s", "", one) for one in decoded] == [re.sub(r"\s", "", t) for t in train]


def test_words_are_set_apart_by_one_space():
    tokenizer = learn([" a\n b\t\tc "], TokenizerSettings(kind="word"))
    assert tokenizer.decode(ids_of(tokenizer, " a\n b\t\tc ")) == "a b c"


@pytest.mark.parametrize("kind", ["bpe", "character", "word"])
def test_nothing_is_encoded_as_nothing(kind):
    tokenizer = learn(["ab c"], TokenizerSettings(kind=kind))
    (ids,) = tokenizer.encode([""])
    assert (ids.shape, ids.dtype) == ((0,), np.int64)
    assert tokenizer.decode([]) == ""
    assert list(tokenizer.encode([])) == []


def test_batches_change_nothing(learned):
    texts = HARD * (3000 // len(HARD))
    one_by_one = [next(learned.encode([text])).tolist() for text in texts]
    assert [ids.tolist() for ids in learned.encode(texts)] == one_by_one


def test_learning_twice_gives_the_same_file(tmp_path):
    hashes = {save(learn(HARD, bpe(size=300)), tmp_path / str(n)) for n in range(3)}
    assert len(hashes) == 1


@pytest.mark.parametrize("junk", [b"", b"{}", b"[]", b"\x00\xff", b'{"model": {}}', b"[" * 100_000])
def test_a_damaged_file_is_named_with_the_way_to_make_it_anew(tmp_path, junk):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(junk)
    with pytest.raises(ArtifactError) as caught:
        load(tmp_path)
    assert str(caught.value).startswith(f"{path} is not a tokenizer (")
    assert str(caught.value).endswith("; delete it and run `dvc repro`")


def test_a_file_cut_anywhere_is_damaged(tmp_path):
    save(learn(["abab"], bpe(size=258)), tmp_path)
    path = tmp_path / "tokenizer.json"
    whole = path.read_bytes().rstrip()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(ArtifactError, match=r"tokenizer\.json is not a tokenizer"):
            load(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArtifactError, match=r"tokenizer\.json is missing; run `dvc repro`"):
        load(tmp_path)


@pytest.mark.parametrize("asked", [262, 10**6, 2**32])
@pytest.mark.parametrize("markers", ["none", "bos_eos"])
def test_no_more_merges_are_asked_of_the_library_than_the_text_can_give(
    monkeypatch, asked, markers
):
    sizes = []
    trainer = trainers.BpeTrainer

    def recorded(**options):
        sizes.append(options["vocab_size"])
        return trainer(**options)

    monkeypatch.setattr("neural_ngram.tokens.tokenizer.trainers.BpeTrainer", recorded)
    texts = ["abcabcabc ночь", "bcabca"]
    tokenizer = learn(texts, bpe(size=asked, markers=markers))
    assert 256 < sizes[0] <= 256 + sum(len(text.encode()) for text in texts)
    least = learn(texts, bpe(size=300, markers=markers))
    if asked > 300:
        assert tokenizer.tokens == least.tokens


def test_the_bound_on_merges_is_reached_by_one_letter_over_and_over():
    texts = ["a" * 64 + "b"]
    alone = learn(texts, bpe(size=10**9, markers="none"))
    assert alone.vocabulary_size == 256 + 5  # aa, then twice as long each time, up to 32


@pytest.mark.parametrize(
    ("text", "pattern", "longest"),
    [
        ("a" * 60_000, "gpt2", 60_000),
        ("word " * 10 + "a" * 60_000 + " word", "gpt2", 60_000),
        ("é" * 30_000, "gpt2", 60_000),
        (" " * 60_000 + "a", "gpt2", 60_000),
        ("a1" * 60_000, "gpt2", 0),
        ("word " * 20_000, "gpt2", 0),
        ("a" * 49_999, "gpt2", 0),
        ("word " * 20_000, "none", 100_000),
    ],
)
def test_the_longest_stretch_without_a_break_is_measured(text, pattern, longest):
    assert longest_stretch(["short", text, "a" * 10], bpe(pattern=pattern)) == longest


def test_measuring_stretches_looks_at_each_character_a_bounded_number_of_times():
    # Just below the bound, a search from each character on would take a minute.
    assert longest_stretch([("a" * 12_499 + " ") * 800], bpe()) == 0


def test_a_kind_is_one_entry_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "wordpunct", Kind(isolated(r"\w+|\W")))
    settings = TokenizerSettings(kind="wordpunct", markers="shared", minimum_frequency=2)
    tokenizer = learn(["so, so it", "it is, or it"], settings)
    assert tokenizer.tokens[1:] == [" ", ",", "it", "so"]
    save(tokenizer, tmp_path)
    again = load(tmp_path)
    assert (again.kind, again.separator, again.byte_level) == ("wordpunct", b"", False)
    assert again.decode(ids_of(again, "it, so  it")) == "it, so  it"
    with pytest.raises(TokenizerError, match="the wordpunct 'or' in text 1"):
        ids_of(again, "it or")
    monkeypatch.delitem(KINDS, "wordpunct")
    with pytest.raises(ArtifactError, match="none of the kinds bpe, character, word"):
        load(tmp_path)


def test_a_tokenizer_is_identified_by_its_file(tmp_path):
    tokenizer = learn(["ab ab"], bpe(size=258))
    assert tokenizer.sha256 == save(tokenizer, tmp_path) == load(tmp_path).sha256
    path = tmp_path / "tokenizer.json"
    path.write_bytes(path.read_bytes() + b"\n")
    assert load(tmp_path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_tokens_are_labelled_and_looked_up():
    tokenizer = learn(["a b\n"], bpe(size=258))
    labels = [tokenizer.label(t) for t in (tokenizer.bos, 2 + 32, 2 + 10, 2 + 0xC4, 2 + 97)]
    assert labels == ["<begin document>", "␣", "\\n", "\\xc4", "a"]
    assert (tokenizer.text(2 + 32), tokenizer.text(tokenizer.eos)) == (" ", "<end document>")
    assert (tokenizer.look_up("a"), tokenizer.look_up("#7")) == (99, 7)
    with pytest.raises(TokenizerError, match="the vocabulary has no token 'ab'"):
        tokenizer.look_up("ab")
    assert tokenizer.special == (0, 1)


def test_tokens_are_appended_as_they_are_set_apart():
    words = learn(["a b"], TokenizerSettings(kind="word"))
    a, b = words.look_up("a"), words.look_up("b")
    assert words.append(b"x", [a, b]) == b"x a b"
    assert words.append(b"x ", [a]) == b"x a"
    assert (words.append(b"", [a]), words.append(b"x", [])) == (b"a", b"x")
    assert words.append(b"x", [words.eos]) == b"x"
    assert learn(["ab"], bpe(size=258)).append(b"x", [2 + 97]) == b"xa"


def test_part_of_a_character_is_no_text_for_whole_characters():
    words = learn(["a é"], TokenizerSettings(kind="word"))
    assert words.encode_bytes("é".encode()).tolist() == [words.look_up("é")]
    with pytest.raises(TokenizerError, match="ends within a character"):
        words.encode_bytes("é".encode()[:1])


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ({"added_tokens": [{"id": 2, "content": "a", "single_word": False, "lstrip": False,
                            "rstrip": False, "normalized": False, "special": True}]},
         "takes some texts for special tokens"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "none of the kinds"),
        ({"pre_tokenizer": None}, "none of the kinds"),
    ],
)  # fmt: skip
def test_a_file_of_words_that_would_cut_text_otherwise_is_refused(tmp_path, damage, told):
    save(learn(["a b"], TokenizerSettings(kind="word")), tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(ArtifactError, match=told):
        load(tmp_path)


def test_a_file_without_the_unknown_token_that_it_names_is_refused(tmp_path):
    save(learn(["a b"], TokenizerSettings(kind="word", unknown=True)), tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(path.read_text().replace('"unk_token": "<unk>"', '"unk_token": "<none>"'))
    with pytest.raises(ArtifactError, match="no token '<none>'"):
        load(tmp_path)
