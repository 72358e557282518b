"""The kinds of tokenizer; a new entry here is a new kind.

An entry is data, so that the settings know the names without the tokenizer library. `split` cuts a
text into pieces, written as in `tokenizer.json` (a pre-tokenizer of Hugging Face `tokenizers`). A
file's kind is recognised by it, so no two entries share one. With the model `WordLevel` each
distinct piece is a token; with `BPE` tokens are bytes and what merges join.

    bpe         byte-level BPE, Sennrich, Haddow & Birch 2016
    character   each code point
    word        separated by whitespace
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

__all__ = ["KINDS", "Kind", "isolated"]


class Kind(NamedTuple):
    """How text becomes tokens, and how tokens become text again.

    split: what the file's pre-tokenizer contains at least.
    model: `WordLevel` or `BPE`.
    separator: what lies between the texts of two tokens, since `split` drops it.
    drops_rare: whether pieces rarer than `tokenizer.minimum_frequency` become <unk>.
    pieces: the pieces that `split` yields, where plain Python is faster.
    """

    split: Mapping[str, object]
    model: str = "WordLevel"
    separator: bytes = b""
    drops_rare: bool = True
    pieces: Callable[[str], Iterable[str]] | None = None


def isolated(pattern: str) -> dict[str, object]:
    """Each match of a regular expression is a piece, and so is what lies between two matches."""
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


KINDS = {
    "bpe": Kind({"type": "ByteLevel", "add_prefix_space": False}, model="BPE"),
    "character": Kind(isolated(r"[\s\S]"), drops_rare=False, pieces=iter),
    "word": Kind({"type": "WhitespaceSplit"}, separator=b" "),
}
