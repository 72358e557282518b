"""Text to token IDs and back, by one of the `kinds`, as one `tokenizer.json`.

IDs are laid out as: special tokens (BOS 0 and EOS 1, or one shared token 0, or none), then <unk> if
there is one, then the alphabet (the 256 bytes in order, or sorted characters or words), then for
BPE the merges in order of rank.

BPE follows Sennrich, Haddow & Birch 2016 over bytes: the most frequent adjacent pair is merged,
ties go to the smallest (left, right) pair of IDs, replacement runs from left to right. The learning
itself and the encoding are those of Hugging Face `tokenizers`.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers, trainers

from neural_ngram.artifacts import sha256_of_file, write_text
from neural_ngram.choices.tokenizers import KINDS, Kind
from neural_ngram.errors import ArtifactError, TokenizerError
from neural_ngram.settings import TokenizerSettings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Tokenizer", "learn", "load", "longest_stretch", "merge_table", "save"]

# The special tokens' names contain a space, which no byte-level token, character or word can, so
# a text that spells one is encoded as text.
BOS, EOS, SHARED = "<begin document>", "<end document>", "<document boundary>"
UNKNOWN = "<unk>"
TEXTS_AT_ONCE = 1024
LONG_STRETCH = 50_000  # bytes; learning BPE on more of them without a break takes seconds
_MARKERS: dict[str, tuple[str, ...]] = {"bos_eos": (BOS, EOS), "shared": (SHARED,), "none": ()}


def _byte_characters() -> list[str]:
    """The printable stand-in for each byte 0..255 that byte-level tokenizers use since GPT-2."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(hidden)) for byte in range(256)]


_CHARACTER_OF_BYTE = _byte_characters()
_BYTE_OF_CHARACTER = {character: byte for byte, character in enumerate(_CHARACTER_OF_BYTE)}


@dataclass(frozen=True)
class Tokenizer:
    """A learned tokenizer around the `tokenizers` object that does the work.

    file_sha256: of the `tokenizer.json` that it was read from.
    """

    backend: tokenizers.Tokenizer
    file_sha256: str | None = None

    @property
    def vocabulary_size(self) -> int:
        """V, including special tokens."""
        return int(self.backend.get_vocab_size(with_added_tokens=False))

    @cached_property
    def kind(self) -> str:
        """Which of the kinds this is; raises ValueError when it is none."""
        split = json.loads(self.backend.to_str())["pre_tokenizer"] or {}
        model = type(self.backend.model).__name__
        for name, known in KINDS.items():
            if known.model == model and {**split, **known.split} == split:
                return name
        raise ValueError(f"it is none of the kinds {', '.join(KINDS)}")

    @property
    def sha256(self) -> str:
        """The hexadecimal SHA-256 of `tokenizer.json`, which is the tokenizer's identity."""
        return self.file_sha256 or hashlib.sha256(_file_text(self).encode()).hexdigest()

    @property
    def separator(self) -> bytes:
        """What lies between the texts of two tokens."""
        return self._kind.separator

    @property
    def byte_level(self) -> bool:
        """Whether tokens represent bytes, so that any bytes can be encoded."""
        return self._kind.model == "BPE"

    @cached_property
    def bos(self) -> int | None:
        """ID that begins a document, None without special tokens."""
        return self._id(BOS, SHARED)

    @cached_property
    def eos(self) -> int | None:
        """ID that ends a document, None without special tokens."""
        return self._id(EOS, SHARED)

    @property
    def special(self) -> tuple[int | None, int | None]:
        """The IDs of BOS and EOS."""
        return self.bos, self.eos

    @cached_property
    def unknown(self) -> int | None:
        """ID of what does not occur in train, None when that is an error."""
        name = getattr(self.backend.model, "unk_token", None)
        return self._id(name) if name else None

    @cached_property
    def tokens(self) -> list[str]:
        """(V,) each token as `tokenizer.json` writes it."""
        vocabulary = self.backend.get_vocab(with_added_tokens=False)
        return sorted(vocabulary, key=vocabulary.__getitem__)

    @cached_property
    def names(self) -> list[str]:
        """(V,) each token with whitespace replaced by its code point: <U+0020>."""
        return [
            "".join(f"<U+{ord(c):04X}>" if c.isspace() else c for c in token)
            for token in self.tokens
        ]

    @cached_property
    def pieces(self) -> list[bytes]:
        """(V,) the bytes that each token represents; none for a special token."""
        return [self._piece(token) for token in self.tokens]

    def text(self, token: int) -> str:
        """The text of a token, incomplete bytes as \\x..; the name of a special token."""
        return self.pieces[token].decode("utf-8", "backslashreplace") or self.tokens[token]

    def label(self, token: int) -> str:
        """A token for display: its text with spaces and unprintable characters made visible."""
        if not self.pieces[token]:
            return self.tokens[token]
        text = self.text(token)
        return "".join("␣" if c == " " else c if c.isprintable() else repr(c)[1:-1] for c in text)

    def look_up(self, text: str) -> int:
        """The token with exactly this text, or with the ID that is written as `#12`.

        Raises TokenizerError when there is none.
        """
        if text.startswith("#") and text[1:].isdecimal():
            return int(text[1:])
        if text.encode("utf-8") not in self.pieces:
            raise TokenizerError(
                f"the vocabulary has no token {text!r}; give one that it has, or an ID such as #12"
            )
        return self.pieces.index(text.encode("utf-8"))

    def encode(self, texts: Iterable[str]) -> Iterator[NDArray[np.int64]]:
        """The IDs of each text, without special tokens; a thousand texts are encoded at a time.

        Raises TokenizerError for a symbol that the vocabulary lacks when there is no <unk>.
        """
        return (ids for _, ids in self.encode_with_text(texts))

    def encode_with_text(self, texts: Iterable[str]) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Each text and its IDs; raises what `encode` raises."""
        source, start = iter(texts), 0
        while some := list(islice(source, TEXTS_AT_ONCE)):
            try:
                encodings = self.backend.encode_batch_fast(some, add_special_tokens=False)
            except Exception as problem:
                raise TokenizerError(self._missing(some, start)) from problem
            for text, encoding in zip(some, encodings, strict=True):
                yield text, np.array(encoding.ids, dtype=np.int64)
            start += len(some)

    def encode_bytes(self, data: bytes) -> NDArray[np.int64]:
        """The IDs of bytes; for a byte-level tokenizer these need not be UTF-8.

        Raises TokenizerError when they are not and each token is whole characters.
        """
        if not self.byte_level:
            return next(self.encode([_whole(data)]))
        escaped = data.decode("utf-8", "surrogateescape")
        zero = self.tokens.index(_CHARACTER_OF_BYTE[0])
        parts = [
            np.array([zero + byte for byte in part.encode("utf-8", "surrogateescape")])
            if "\udc80" <= part[0] <= "\udcff"
            else next(self.encode([part]))
            for part in re.findall("[\udc80-\udcff]+|[^\udc80-\udcff]+", escaped)
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that IDs represent, without special tokens; words are separated by spaces."""
        pieces = (self.pieces[i] for i in ids if self.tokens[i] not in (BOS, EOS, SHARED))
        return self.separator.join(pieces)

    def append(self, data: bytes, ids: Iterable[int]) -> bytes:
        """The bytes that IDs represent after others, including the separator."""
        added = self.decode_bytes(ids)
        apart = data and added and not data[-1:].isspace()
        return data + (self.separator if apart else b"") + added

    def decode(self, ids: Iterable[int]) -> str:
        """The text that IDs represent; invalid UTF-8 is shown as U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    @property
    def _kind(self) -> Kind:
        return KINDS[self.kind]

    def _id(self, *names: str) -> int | None:
        found = [self.backend.token_to_id(name) for name in names]
        return next((identifier for identifier in found if identifier is not None), None)

    def _piece(self, token: str) -> bytes:
        if token in (BOS, EOS, SHARED):
            return b""
        if self.byte_level:
            return bytes(_BYTE_OF_CHARACTER[character] for character in token)
        return token.encode("utf-8")

    def _missing(self, texts: Sequence[str], first: int) -> str:
        numbered = list(enumerate(texts, start=first + 1))
        for number, text in numbered:
            if surrogate := re.search("[\ud800-\udfff]", text):
                return (
                    f"text {number} contains the lone surrogate {surrogate[0]!r} at character "
                    f"{surrogate.start()}, which is not text; fix its encoding"
                )
        known, cut = set(self.tokens), _cut(self.backend.pre_tokenizer)
        missing = ((n, s) for n, text in numbered for s in cut(text) if s not in known)
        number, symbol = next(missing, (first + 1, "?"))
        return (
            f"the {self.kind} {symbol!r} in text {number} is not in the vocabulary learned from "
            "train; set tokenizer.unknown=true"
        )


def _whole(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TokenizerError(
            "the prompt ends within a character, but this model reads whole ones; complete it"
        ) from None


def _cut(split: pre_tokenizers.PreTokenizer) -> Callable[[str], Iterable[str]]:
    """The splitter of a text into the pieces that the backend sees."""
    return lambda text: (piece for piece, _ in split.pre_tokenize_str(text))


def learn(texts: Iterable[str], settings: TokenizerSettings) -> Tokenizer:
    """Learn a tokenizer from the train texts, which are read repeatedly and never all in memory.

    BPE may find fewer merges than asked; the caller sees it in `vocabulary_size`.

    Raises TokenizerError when the texts have fewer than two distinct characters or the requested
    vocabulary is too small for the alphabet.
    """
    if len(set(islice(_changes(texts), 2))) < 2:
        raise TokenizerError(
            "train has fewer than two distinct characters, so there is nothing to predict; "
            "check corpus.path"
        )
    markers = _MARKERS[settings.markers]
    tokenizer = _LEARNERS[KINDS[settings.kind].model](texts, settings, markers)
    assert tokenizer.kind == settings.kind, "two kinds have the same split"
    return tokenizer


def _learn_symbols(
    texts: Iterable[str], settings: TokenizerSettings, markers: tuple[str, ...]
) -> Tokenizer:
    kind = KINDS[settings.kind]
    split = _pre_tokenizer(kind.split)
    cut, symbols = kind.pieces or _cut(split), Counter[str]()
    for text in texts:
        symbols.update(cut(text))
    least = settings.minimum_frequency if kind.drops_rare else 1
    kept = sorted(symbol for symbol, count in symbols.items() if count >= least)
    unknown = (UNKNOWN,) if settings.unknown else ()
    names = [*markers, *unknown, *(symbol for symbol in kept if symbol not in unknown)]
    vocabulary = {name: identifier for identifier, name in enumerate(names)}
    # No symbol is empty, so without <unk> the backend refuses what it does not know.
    unknown_name = UNKNOWN if settings.unknown else ""
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown_name))
    backend.pre_tokenizer = split
    if not kind.separator:  # else the library's own default, a space
        backend.decoder = decoders.Fuse()
    return Tokenizer(backend)


def _pre_tokenizer(split: Mapping[str, object]) -> pre_tokenizers.PreTokenizer:
    """Built from its JSON: the library reads whole files only."""
    bare = json.loads(tokenizers.Tokenizer(models.WordLevel({}, unk_token="")).to_str())
    made = tokenizers.Tokenizer.from_str(json.dumps({**bare, "pre_tokenizer": split}))
    splitter: pre_tokenizers.PreTokenizer = made.pre_tokenizer
    return splitter


def _changes(texts: Iterable[str]) -> Iterator[str]:
    """The first character of all, then each that differs from the one before it."""
    return (character for character, _ in groupby(chain.from_iterable(texts)))


def _learn_bpe(
    texts: Iterable[str], settings: TokenizerSettings, markers: tuple[str, ...]
) -> Tokenizer:
    alphabet = len(markers) + 256
    if settings.vocabulary_size < alphabet:
        raise TokenizerError(
            f"tokenizer.vocabulary_size is {settings.vocabulary_size}, but {len(markers)} special "
            f"tokens and 256 bytes need at least {alphabet}"
        )
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=settings.pattern == "gpt2")
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = split
    # Added as "special tokens", the bytes get their IDs in order of value, so that the library's
    # own way of breaking ties, by pair of IDs, is the canonical one.
    trainer = trainers.BpeTrainer(
        vocab_size=256 + _most_merges(texts, settings.vocabulary_size - alphabet),
        special_tokens=_CHARACTER_OF_BYTE,
        min_frequency=2,
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    model = json.loads(learner.to_str())["model"]
    vocabulary = {name: identifier for identifier, name in enumerate(markers)}
    vocabulary |= {name: len(markers) + identifier for name, identifier in model["vocab"].items()}
    merges = [(left, right) for left, right in model["merges"]]
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = split
    backend.decoder = decoders.ByteLevel()
    return Tokenizer(backend)


def _most_merges(texts: Iterable[str], asked: int) -> int:
    """The requested merges, or as many as the texts allow: each removes at least one token.

    The library reserves memory for the number that it is given.
    """
    size = 0
    for text in texts:
        size += len(text.encode("utf-8"))
        if size >= asked:
            return asked
    return size


def longest_stretch(texts: Iterable[str], settings: TokenizerSettings) -> int:
    """The length in bytes of the longest stretch that BPE does not split; 0 below `LONG_STRETCH`.

    A space that the split pattern joins to a stretch is not counted.

    Learning takes time quadratic in it, since each merge moves all that follows.
    """
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=settings.pattern == "gpt2")
    least = LONG_STRETCH // 4  # characters, of up to four bytes each
    unbroken = re.compile(rf"(?<!\S)\S{{{least},}}|(?<!\s)\s{{{least},}}")
    longest = 0
    for text in texts:
        if settings.pattern == "none":
            longest = max(longest, len(text.encode("utf-8")))
        elif len(text) >= least:
            for found in unbroken.finditer(text):
                pieces = split.pre_tokenize_str(found[0])
                longest = max(longest, *(len(piece) for piece, _ in pieces))
    return longest if longest >= LONG_STRETCH else 0


_LEARNERS = {"BPE": _learn_bpe, "WordLevel": _learn_symbols}


def merge_table(tokenizer: Tokenizer, encoded: Iterable[NDArray[np.int64]]) -> "pd.DataFrame":
    """Columns rank, left, right, token, count: one row per merge; empty when there are none.

    `count` is how often the merge was applied to the texts whose IDs are given. Every token that a
    later merge consumed was made once, so applications are the final uses of a token plus those of
    each merge that has it as a part, added up from the last rank to the first.
    """
    import pandas as pd  # noqa: PLC0415 - slow, and used here alone

    model = json.loads(tokenizer.backend.to_str())["model"]
    vocabulary, merges = model["vocab"], model.get("merges", [])
    made = np.zeros(tokenizer.vocabulary_size, dtype=np.int64)
    for ids in encoded:
        made += np.bincount(ids, minlength=len(made))
    for left, right in reversed(merges):
        made[vocabulary[left]] += made[vocabulary[left + right]]
        made[vocabulary[right]] += made[vocabulary[left + right]]
    rows = [
        (rank, left, right, vocabulary[left + right], made[vocabulary[left + right]])
        for rank, (left, right) in enumerate(merges)
    ]
    return pd.DataFrame(rows, columns=["rank", "left", "right", "token", "count"])


def save(tokenizer: Tokenizer, folder: Path) -> str:
    """Write `tokenizer.json`; returns its SHA-256, which is the tokenizer's identity."""
    write_text(folder / "tokenizer.json", _file_text(tokenizer))
    return sha256_of_file(folder / "tokenizer.json")


def _file_text(tokenizer: Tokenizer) -> str:
    return tokenizer.backend.to_str(pretty=True) + "\n"


def load(folder: Path) -> Tokenizer:
    """Read `tokenizer.json`; raises ArtifactError when it is missing or damaged."""
    path = folder / "tokenizer.json"
    sha256 = sha256_of_file(path)
    try:
        tokenizer = Tokenizer(tokenizers.Tokenizer.from_file(str(path)), sha256)
        _require_sound(tokenizer)
        return tokenizer
    except Exception as problem:
        raise ArtifactError(
            f"{path} is not a tokenizer ({problem}); delete it and run `dvc repro`"
        ) from problem


def _require_sound(tokenizer: Tokenizer) -> None:
    """Raise ValueError when a readable file is not a tokenizer as `learn` creates it."""
    backend, known = tokenizer.backend, tokenizer.tokens
    ids = backend.get_vocab(with_added_tokens=False).values()
    if sorted(ids) != list(range(len(known))):
        raise ValueError("its IDs are not 0, 1, 2 and so on")
    if backend.truncation or backend.padding or backend.normalizer:
        raise ValueError("it would change the text")
    if backend.get_added_tokens_decoder():
        raise ValueError("it takes some texts for special tokens")
    unknown = getattr(backend.model, "unk_token", None)
    if unknown and tokenizer.unknown is None:
        raise ValueError(f"it has no token {unknown!r} for unknown text")
    sample = "".join(map(chr, range(0x250))) + " \U0001f600"
    ids = next(tokenizer.encode([sample])).tolist() if tokenizer.byte_level else []
    if tokenizer.byte_level and tokenizer.decode(ids) != sample:
        raise ValueError("decoding does not return the encoded text")
