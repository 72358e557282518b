"""Text that streams into the terminal as the model of the last run makes it."""

import time
from collections.abc import Sequence

from neural_ngram.commands import current_settings, last_run
from neural_ngram.generation import TextStream, collect, next_tokens, opening_context
from neural_ngram.sampling import samplers_of

__all__ = ["show_continuations"]


def show_continuations(prompt: str, overrides: Sequence[str], pause: float) -> None:
    """Continue a prompt `generation.samples` times, or once, greedily, at temperature 0.

    pause: seconds to wait after each token.
    """
    asked, run = current_settings(overrides).generation, last_run()
    tokenizer, length = run.tokenizer, run.model.architecture.context_length
    ids = next(tokenizer.encode([prompt])).tolist()
    context = opening_context(ids, length=length, bos=tokenizer.bos)
    for sampler in samplers_of(asked):
        stream = TextStream(tokenizer)

        def show(token: int, stream: TextStream = stream) -> None:
            print(stream.feed([token]), end="", flush=True)
            time.sleep(pause)

        print(stream.feed(ids), end="", flush=True)
        tokens = next_tokens(run.model, context, (tokenizer.bos, tokenizer.eos), sampler)
        collect(tokens, asked.max_new_tokens, show)
        print(stream.close(), flush=True)
