"""A trained model with its tokenizer, its floor, its baseline and the interpolation of both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neural_ngram.errors import ArtifactError, ConfigurationError
from neural_ngram.evaluation import scoring
from neural_ngram.evaluation.summary import HEADER, summary
from neural_ngram.generation.trained import ROWS_AT_ONCE, Trained
from neural_ngram.library.scorer import FullScore, Score, Scorer
from neural_ngram.library.threads import threads_for
from neural_ngram.model.architecture import parameter_count
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.settings import GenerationSettings, read_group
from neural_ngram.tokens.tokenizer import Tokenizer
from neural_ngram.tokens.windows import Windows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LanguageModel"]


@dataclass(frozen=True, eq=False, repr=False)
class LanguageModel:
    """What `fit` and `load` return.

    trained: the network and its tokenizer.
    counts: the Kneser-Ney model of the same windows, None where it was not kept.
    figures: what was measured on train and validation, as the stages `evaluate` and
    `oracle-conditional-entropy` name it: train, validation, interpolated, oracle, kneser_ney.
    """

    trained: Trained
    counts: KneserNey | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    generation: GenerationSettings = field(default_factory=GenerationSettings)

    @property
    def tokenizer(self) -> Tokenizer:
        """Text to token IDs and back."""
        return self.trained.tokenizer

    @property
    def context_length(self) -> int:
        """C, the number of tokens that the network reads."""
        return self.trained.model.architecture.context_length

    @property
    def floor(self) -> float:
        """Conditional entropy of the train windows given C tokens, in nats: the least train loss.

        Raises ArtifactError where it was not kept.
        """
        floor: float = self._figure("oracle", f"k{self.context_length}", "entropy_nats")
        return floor

    @property
    def baseline(self) -> Scorer:
        """Interpolated modified Kneser-Ney; raises ArtifactError where it was not kept."""
        if self.counts is None:
            raise ArtifactError(
                "this model was saved without its baseline; load the folder of `save`, or "
                "the artifacts of a finished pipeline"
            )
        return Scorer(self.trained, self.counts.log_probabilities, self.counts)

    @property
    def interpolated(self) -> Scorer:
        """Model and baseline, weighted as was best on validation.

        Raises ArtifactError where baseline or weight were not kept.
        """
        weight = self._figure("interpolated", "tuned", "model_weight")
        baseline = self.baseline
        with np.errstate(divide="ignore"):
            logs = np.log(weight), np.log1p(-weight)

        def mixed(windows: Windows) -> NDArray[np.float64]:
            model, counts = self._network(windows), baseline.log_probabilities(windows)
            mixture: NDArray[np.float64] = np.logaddexp(logs[0] + model, logs[1] + counts)
            return mixture

        return Scorer(self.trained, mixed)

    def score(self, text: str | Sequence[str]) -> Score:
        """The network's score of a text, or of several; as `Scorer.score`."""
        return self._scorer.score(text)

    def perplexity(self, text: str | Sequence[str]) -> float:
        """The network's perplexity per token of a text, EOS included."""
        return self._scorer.perplexity(text)

    def full_scores(
        self, text: str, *, bos: bool = True, eos: bool = True, log10: bool = False
    ) -> Iterator[FullScore]:
        """Each token with the meaning of kenlm's `full_scores`; as `Scorer.full_scores`."""
        return self._scorer.full_scores(text, bos=bos, eos=eos, log10=log10)

    def next(self, text: str = "", count: int = 10) -> "pd.DataFrame":
        """The `count` most probable tokens after a text: token, id, probability.

        Raises ModelError when the text is too short for a model without BOS, TokenizerError for
        what the vocabulary lacks.
        """
        import pandas as pd  # noqa: PLC0415

        if count < 1:
            raise ConfigurationError(f"count is {count}, but must be at least 1")
        with threads_for(self.trained.model.architecture):
            found = self.trained.next_tokens(text, count)
        rows = [(each.text, each.token, each.probability) for each in found]
        return pd.DataFrame(rows, columns=["token", "id", "probability"])

    def sample(
        self, n: int = 1, prompt: str | None = None, *, stream: bool = False, **settings: Any
    ) -> Any:
        """`n` texts, each the prompt and what follows it; a single, greedy one at temperature 0.

        settings: `seed`, `temperature`, `top_k`, `top_p`, `max_new_tokens`; those left out are as
        the model was fitted. stream: an iterator of text as it is generated instead of a list, with
        a line break after each sample but the last.

        Raises ConfigurationError for a setting that is unknown or out of range, and what `next`
        raises.
        """
        given = settings if prompt is None else settings | {"prompt": prompt}
        asked = read_group(GenerationSettings, vars(self.generation) | given | {"samples": n})
        if n < 1:
            raise ConfigurationError(f"n is {n}, but must be at least 1")
        return self._stream(asked) if stream else self._samples(asked)

    def save(self, folder: str | Path) -> Path:
        """Write the model to a folder that `load` reads; raises ArtifactError when it cannot."""
        from neural_ngram.library.folder import save  # noqa: PLC0415 - which knows this class

        return save(self, Path(folder))

    @property
    def summary(self) -> "pd.DataFrame":
        """Train and validation: tokens, loss, perplexity, bits per byte, floor and baseline."""
        import pandas as pd  # noqa: PLC0415

        rows = summary(self.figures, self.figures, self.context_length)
        return pd.DataFrame(rows, columns=list(HEADER)).set_index("partition")

    def __repr__(self) -> str:
        architecture = self.trained.model.architecture
        return (
            f"LanguageModel({architecture.settings.hidden}, context {self.context_length}, "
            f"{architecture.vocabulary_size:,} tokens of {self.tokenizer.kind}, "
            f"{parameter_count(architecture):,} parameters)"
        )

    def _repr_html_(self) -> str:
        import html  # noqa: PLC0415

        return f"<p>{html.escape(repr(self))}</p>{self.summary.to_html()}"

    @property
    def _scorer(self) -> Scorer:
        return Scorer(self.trained, self._network)

    def _network(self, windows: Windows) -> NDArray[np.float64]:
        with threads_for(self.trained.model.architecture):
            scores = scoring.score(self.trained.model, windows, batch_size=ROWS_AT_ONCE)
        return scores.log_probabilities

    def _samples(self, asked: GenerationSettings) -> list[str]:
        prompt = asked.prompt.encode()
        with threads_for(self.trained.model.architecture):
            found = self.trained.samples(asked.prompt, asked)
        return [
            self.tokenizer.append(prompt, each.ids).decode("utf-8", "replace") for each in found
        ]

    def _stream(self, asked: GenerationSettings) -> Iterator[str]:
        with threads_for(self.trained.model.architecture):
            for number, each in enumerate(self.trained.streams(asked.prompt, asked)):
                if number:
                    yield "\n"
                yield from each

    def _figure(self, *names: str) -> Any:
        found: Any = self.figures
        for name in names:
            if not isinstance(found, Mapping) or name not in found:
                raise ArtifactError(
                    f"this model was saved without {'.'.join(names)}; load the folder of `save`, "
                    "or the artifacts of a finished pipeline"
                )
            found = found[name]
        return found
