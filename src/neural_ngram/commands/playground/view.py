"""What the playground shows of a model: next tokens, continuations, neighbours.

A prompt is bytes, since the token that a user picks may end within a character.
Dimension letters: V vocabulary.
"""

from dataclasses import asdict, dataclass, replace

import numpy as np

from neural_ngram.commands import Trained
from neural_ngram.commands.inspection import label, token_id
from neural_ngram.errors import ConfigurationError, TokenizerError
from neural_ngram.generation import (
    collect,
    never_produced,
    next_logits,
    next_tokens,
    opening_context,
)
from neural_ngram.neighbours import nearest
from neural_ngram.randomness import SplitMix64
from neural_ngram.sampling import Sampler, sampler_of, samplers_of
from neural_ngram.settings import GenerationSettings, read_group

__all__ = ["MOST_CHARACTERS", "Choice", "choices", "continued", "neighbours", "shown"]

MOST_CHARACTERS = 10_000
MOST_NEW_TOKENS = 10_000


@dataclass(frozen=True)
class Choice:
    """A token that may come next: how it reads, how probable it is, what the prompt becomes."""

    label: str
    probability: float
    prompt: bytes


def choices(played: Trained, prompt: bytes, asked: GenerationSettings, count: int) -> list[Choice]:
    """The `count` most probable next tokens as they would be drawn, ties to the lower ID.

    Tokens that temperature, top-k and top-p leave no probability are not among them.

    Raises TokenizerError or ModelError for a prompt that the model cannot read, ConfigurationError
    for one that is too long and for values out of range.
    """
    _require(prompt, asked)
    masked = never_produced(_markers(played))
    logits_V = next_logits(played.model, _context(played, prompt), masked)
    weights_V = (sampler_of(asked) or Sampler(1.0, SplitMix64(0), top_k=1)).weights(logits_V)
    p_V = weights_V / weights_V.sum()
    order = np.argsort(-p_V, kind="stable")[:count].tolist()
    return [
        Choice(label(played.tokenizer, token), p, _joined(played, prompt, [token]))
        for token in order
        if (p := float(p_V[token])) > 0
    ]


def continued(played: Trained, prompt: bytes, asked: GenerationSettings) -> bytes:
    """The prompt with at most `max_new_tokens` tokens after it, greedy at temperature 0.

    Raises what `choices` raises.
    """
    _require(prompt, asked)
    context, sampler = _context(played, prompt), samplers_of(replace(asked, samples=1))[0]
    tokens = next_tokens(played.model, context, _markers(played), sampler)
    return _joined(played, prompt, collect(tokens, asked.max_new_tokens).ids)


def neighbours(played: Trained, token: str, count: int) -> list[tuple[str, float]]:
    """How the tokens nearest to one in embedding space read, and their cosines.

    Raises TokenizerError when no token of the vocabulary is written like that.
    """
    embedding_VD = played.model.parameters["embedding"].numpy()
    identifier = token_id(played.tokenizer, token.replace("␣", " "))
    found = nearest(embedding_VD, identifier, count)
    return [(label(played.tokenizer, each.token), each.cosine) for each in found]


def shown(prompt: bytes) -> str:
    """The prompt as text; a character that is not whole yet as U+FFFD."""
    return prompt.decode("utf-8", "replace")


def _require(prompt: bytes, asked: GenerationSettings) -> None:
    """What comes from a browser is checked before anything is computed."""
    if len(prompt) > 4 * MOST_CHARACTERS or len(shown(prompt)) > MOST_CHARACTERS:
        raise ConfigurationError(
            f"the prompt has more than {MOST_CHARACTERS:,} characters; shorten it"
        )
    read_group(GenerationSettings, asdict(asked))
    if asked.max_new_tokens > MOST_NEW_TOKENS:
        raise ConfigurationError(
            f"max_new_tokens is {asked.max_new_tokens:,}, but the playground draws "
            f"{MOST_NEW_TOKENS:,} at most"
        )


def _markers(played: Trained) -> tuple[int | None, int | None]:
    return played.tokenizer.bos, played.tokenizer.eos


def _context(played: Trained, prompt: bytes) -> list[int]:
    if played.tokenizer.kind == "bpe":
        ids = played.tokenizer.encode_bytes(prompt).tolist()
    else:
        try:
            ids = next(played.tokenizer.encode([prompt.decode("utf-8")])).tolist()
        except UnicodeDecodeError:
            raise TokenizerError(
                "the prompt ends within a character, and this model reads whole ones; finish it"
            ) from None
    length = played.model.architecture.context_length
    return opening_context(ids, length=length, bos=played.tokenizer.bos)


def _joined(played: Trained, prompt: bytes, ids: list[int]) -> bytes:
    added = played.tokenizer.decode_bytes(ids)
    words = played.tokenizer.kind == "word" and prompt and added
    return prompt + (b" " if words and not prompt[-1:].isspace() else b"") + added
