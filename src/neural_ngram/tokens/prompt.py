"""What a model reads of a prompt: its last tokens, one context long."""

from collections.abc import Sequence

from neural_ngram.errors import ModelError
from neural_ngram.tokens.tokenizer import Tokenizer

__all__ = ["context_of", "opening_context"]


def opening_context(prompt: Sequence[int], *, length: int, bos: int | None) -> list[int]:
    """The last `length` tokens of the prompt, padded on the left with BOS if it is shorter.

    Raises ModelError when it is shorter and there is no BOS.
    """
    if len(prompt) < length and bos is None:
        raise ModelError(
            f"the prompt has {len(prompt)} tokens but the model reads {length}, and without "
            "special tokens it cannot be padded; give a longer generation.prompt"
        )
    return ([bos] * length if bos is not None else [])[: max(0, length - len(prompt))] + list(
        prompt[-length:]
    )


def context_of(text: str, tokenizer: Tokenizer, length: int) -> list[int]:
    """What a model reads after a text; raises what `opening_context` and `encode` raise."""
    ids = next(tokenizer.encode([text])).tolist()
    return opening_context(ids, length=length, bos=tokenizer.bos)
