"""What the playground shows: next tokens, continuations, neighbours.

A prompt is bytes, since the token that a user picks may end within a character.
"""

from dataclasses import asdict, dataclass, replace

from neural_ngram.errors import ConfigurationError
from neural_ngram.export.neighbours import nearest
from neural_ngram.generation.trained import Trained
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
    """The `count` most probable next tokens under the sampling settings, ties to the lower ID.

    Tokens whose probability temperature, top-k and top-p reduce to zero are left out.

    Raises TokenizerError or ModelError for a prompt that the model cannot read, ConfigurationError
    for one that is too long and for values out of range.
    """
    _require(prompt, asked)
    append = played.tokenizer.append
    return [
        Choice(each.label, each.probability, append(prompt, [each.token]))
        for each in played.next_tokens(prompt, count, asked)
    ]


def continued(played: Trained, prompt: bytes, asked: GenerationSettings) -> bytes:
    """The prompt with at most `max_new_tokens` tokens after it, greedy at temperature 0.

    Raises what `choices` raises.
    """
    _require(prompt, asked)
    (sample,) = played.samples(prompt, replace(asked, samples=1))
    return played.tokenizer.append(prompt, sample.ids)


def neighbours(played: Trained, token: str, count: int) -> list[tuple[str, float]]:
    """The labels of the tokens nearest to one in embedding space, and their cosines.

    Raises TokenizerError when the vocabulary has no such token.
    """
    embedding_VD = played.model.parameters["embedding"].numpy()
    identifier = played.tokenizer.look_up(token.replace("␣", " "))
    found = nearest(embedding_VD, identifier, count)
    return [(played.tokenizer.label(each.token), each.cosine) for each in found]


def shown(prompt: bytes) -> str:
    """The prompt as text; an incomplete character as U+FFFD."""
    return prompt.decode("utf-8", "replace")


def _require(prompt: bytes, asked: GenerationSettings) -> None:
    """Check what comes from the browser before anything is computed."""
    if len(prompt) > 4 * MOST_CHARACTERS or len(shown(prompt)) > MOST_CHARACTERS:
        raise ConfigurationError(
            f"the prompt has more than {MOST_CHARACTERS:,} characters; shorten it"
        )
    read_group(GenerationSettings, asdict(asked))
    if asked.max_new_tokens > MOST_NEW_TOKENS:
        raise ConfigurationError(
            f"max_new_tokens is {asked.max_new_tokens:,}, but the playground samples at most "
            f"{MOST_NEW_TOKENS:,}"
        )
