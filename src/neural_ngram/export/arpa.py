"""A Kneser-Ney model in the ARPA format, which KenLM and its like read.

Dimension letters: V vocabulary, G n-grams of one order, H contexts of one length, m tokens in an
n-gram.

An ARPA file has one line per n-gram: the log10 probability of its last token after the tokens
before it and, below the highest order, the log10 of the back-off weight γ of longer n-grams that
begin with it. γ belongs to a context, so every context needs a line, and so does every prefix of a
line: prefixes that were never counted get the probability that the model gives them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neural_ngram.artifacts import atomic
from neural_ngram.errors import ModelError
from neural_ngram.ngram.counts import Floats
from neural_ngram.ngram.kneser_ney import TOKEN, KneserNey
from neural_ngram.tokens.contexts import Keys

__all__ = ["export_arpa"]

BOS, EOS, UNKNOWN = "<s>", "</s>", "<unk>"
Rows = NDArray[np.int64]
NEVER = "-99"


def export_arpa(model: KneserNey, path: Path, *, tokens: Sequence[str]) -> None:
    """Write the model to `path`, in UTF-8.

    tokens: how each ID is written, V distinct strings without whitespace. In front of other tokens
    BOS is written `<s>`, whatever its string; where BOS is also a target, it also marks the end,
    and there it is written `</s>`. Name the ID of the end of a document `</s>` and that of the
    unknown token `<unk>`: these are their names in KenLM. Special tokens without an ID are added
    with log10 p = −99.

    Raises ModelError when the strings do not fit the model or the format.
    """
    heads, targets = _written(model, tokens)
    unigrams, longer = list(_unigram_lines(model, heads, targets)), _entries(model)
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\\data\\\n")
        for m, count in enumerate([len(unigrams), *map(len, longer)], start=1):
            file.write(f"ngram {m}={count}\n")
        file.write("\n\\1-grams:\n")
        file.writelines(unigrams)
        for m, rows in enumerate(longer, start=2):
            file.write(f"\n\\{m}-grams:\n")
            file.writelines(_lines(model, rows, heads, targets))
        file.write("\n\\end\\\n")


def _written(model: KneserNey, tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """How each ID is written before other tokens, and as the last token of an n-gram."""
    if len(tokens) != model.vocabulary_size:
        raise ModelError(
            f"{len(tokens)} strings were given for a model of {model.vocabulary_size} tokens; "
            "provide one for each ID"
        )
    heads, targets = list(tokens), list(tokens)
    if model.bos is not None:
        heads[model.bos] = BOS
        targets[model.bos] = EOS if _ends_with_bos(model) else BOS
    for place, token in enumerate(targets):
        if not token or token.split() != [token]:
            raise ModelError(
                f"token {place} is written {token!r}, which an ARPA file cannot hold; "
                "give non-empty strings without whitespace"
            )
    if len(set(targets)) < len(targets):
        twice = next(token for place, token in enumerate(targets) if token in targets[:place])
        raise ModelError(
            f"two tokens are written {twice!r}, so an ARPA file cannot tell them apart; "
            "give each ID a string of its own; where the text spells the special tokens <s> and "
            "</s> itself, take them out of the corpus and run `dvc repro`"
        )
    return heads, targets


def _ends_with_bos(model: KneserNey) -> bool:
    return model.bos is not None and bool(model.unigrams[model.bos])


def _unigram_lines(model: KneserNey, heads: list[str], targets: list[str]) -> Iterator[str]:
    ends = _backoffs(model, np.arange(model.vocabulary_size)[:, None])
    rows = zip(_logs(model.unigrams), heads, targets, ends, strict=True)
    for p, head, target, end in rows:
        if head == target:
            yield f"{p}\t{target}{end}\n"
        else:
            yield f"{p}\t{target}\n"
            yield f"{NEVER}\t{head}{end}\n"
    for marker in (BOS, EOS, UNKNOWN):
        if marker not in heads and marker not in targets:
            yield f"{NEVER}\t{marker}\n"


def _entries(model: KneserNey) -> list[Rows]:
    """For m = 2 … n: (G, m) the distinct n-grams that need a line, oldest token first, sorted."""
    entries: list[Rows] = []
    for m in range(model.order, 1, -1):
        beginnings = [longer[:, :-1] for longer in entries[:1]]
        entries.insert(0, np.unique(np.concatenate([_grams(model, m), *beginnings]), axis=0))
    return entries


def _grams(model: KneserNey, m: int) -> Rows:
    """(G, m) the counted n-grams of m tokens, oldest token first."""
    number, target = _halves(model.levels[m - 1].grams)
    columns = []
    for level in model.levels[m - 1 : 0 : -1]:
        number, oldest = _halves(level.contexts[number])
        columns.append(oldest)
    return np.stack([*columns, target], axis=1)


def _halves(keys: Keys) -> tuple[Rows, Rows]:
    return (keys >> TOKEN).astype(np.int64), (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _lines(model: KneserNey, rows: Rows, heads: list[str], targets: list[str]) -> Iterator[str]:
    recent = rows.T[-2::-1]
    probabilities = _logs(model.probabilities(rows[:, -1], recent))
    ends = _backoffs(model, rows)
    for row, p, end in zip(rows.tolist(), probabilities, ends, strict=True):
        words = " ".join([*(heads[token] for token in row[:-1]), targets[row[-1]]])
        yield f"{p}\t{words}{end}\n"


def _backoffs(model: KneserNey, rows: Rows) -> list[str]:
    """For each of the (G, m) n-grams: a tab and log10 γ, or nothing in the highest order."""
    if rows.shape[1] == model.order:
        return [""] * len(rows)
    backoffs = np.ones(len(rows))
    *_, (level, known, context) = model.contexts(rows.T[::-1], len(rows))
    backoffs[known] = level.backoffs[context]
    return [f"\t{log}" for log in _logs(backoffs)]


def _logs(probabilities: Floats) -> list[str]:
    with np.errstate(divide="ignore"):
        logs = np.log10(np.minimum(probabilities, 1))
    return [NEVER if log == -np.inf else f"{log:.7g}" for log in logs.tolist()]
