"""From texts to a trained model: what the stages do, in memory and without their files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neural_ngram.corpus.document import Document
from neural_ngram.corpus.duplicates import links_to_keep, overlaps
from neural_ngram.corpus.origin import corpus_at
from neural_ngram.corpus.overlap import measure, require
from neural_ngram.corpus.partition import Split, split_documents
from neural_ngram.corpus.reading import Corpus, merge_rare_words
from neural_ngram.errors import CorpusError
from neural_ngram.evaluation.decomposition import interpolations, report
from neural_ngram.evaluation.metrics import mean_loss
from neural_ngram.evaluation.scoring import score
from neural_ngram.generation.trained import Trained
from neural_ngram.library.keywords import settings_from
from neural_ngram.library.model import LanguageModel
from neural_ngram.library.threads import threads_for
from neural_ngram.model.network import Model
from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.pipeline.console import say
from neural_ngram.settings import CorpusSettings, Settings, SplitSettings
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.tokenizer import Tokenizer, learn
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.loop import train
from neural_ngram.training.progress import progress
from neural_ngram.training.start import architecture_of, size, untrained

__all__ = ["fit"]

HELD = ("train", "validation")
Encoded = dict[str, tuple[Windows, dict[str, int]]]


def fit(data: str | Path | Iterable[str | Document], **settings: Any) -> LanguageModel:
    """Train a model on texts, documents, or a corpus file or folder.

    data: a path, as text or Path; or the texts themselves, each a document; or documents.
    settings: every setting that shapes a model, by its last name where only one has it
    (`context_length=3`), else with its groups (`training__seed=1`).

    Documents are divided into train, validation and test as the pipeline divides them. The
    tokenizer is learned and the model trained on train alone, validation is only scored, and the
    documents of test are put aside unread.

    Raises ConfigurationError for settings that cannot be right, CorpusError for text that cannot be
    read, PartitionError when a partition stays empty, TokenizerError, WindowError or TrainingError
    when the text does not suit the settings.
    """
    chosen = settings_from(settings)
    split = _split(_corpus(data, chosen.corpus).documents, chosen.corpus.split)
    texts = {name: [document.text for document in split[name]] for name in HELD}
    say(", ".join(f"{len(each):,} {name} documents" for name, each in texts.items()))
    tokenizer = learn(texts["train"], chosen.tokenizer)
    texts["train"] = texts["train"][: chosen.windows.max_train_documents]
    encoded = {
        name: token_windows.encode(each, tokenizer, chosen.windows) for name, each in texts.items()
    }
    model = _trained(chosen, encoded, tokenizer)
    counts = KneserNey.fit(
        encoded["train"][0],
        vocabulary_size=tokenizer.vocabulary_size,
        order=chosen.oracle.order or chosen.windows.context_length + 1,
    )
    trained = Trained(model, tokenizer, {"tokenizer_sha256": tokenizer.sha256})
    return LanguageModel(
        trained, counts, _figures(model, counts, encoded, chosen), chosen.generation
    )


def _corpus(data: str | Path | Iterable[str | Document], settings: CorpusSettings) -> Corpus:
    """The documents as they are read; empty ones are dropped."""
    if isinstance(data, str | Path):
        return corpus_at(Path(data), settings)
    given = [_document(number, each) for number, each in enumerate(data, start=1)]
    corpus = Corpus(documents=[each for each in given if each.text.strip()])
    if not corpus.documents:
        raise CorpusError("there is no text: give texts, documents, or the path of a corpus")
    return merge_rare_words(corpus, settings.minimum_frequency)


def _document(number: int, given: str | Document) -> Document:
    if isinstance(given, Document):
        return given
    if isinstance(given, str):
        return Document(id=str(number), text=given)
    raise CorpusError(
        f"text {number} is {given!r:.60}, but must be a str or a Document; convert it first"
    )


def _split(documents: list[Document], settings: SplitSettings) -> Split:
    """Train and validation; overlap is measured only where a bound on it is asked for."""
    split = split_documents(documents, settings, links=links_to_keep(documents, settings))
    held = {name: split[name] for name in HELD}
    if settings.most_overlap < 1:
        both = {**held, "test": []}
        require(measure(both, overlaps(both, settings.near_duplicate)), settings.most_overlap)
    return held


def _trained(settings: Settings, encoded: Encoded, tokenizer: Tokenizer) -> Model:
    windows = {name: part for name, (part, _) in encoded.items()}
    vocabulary = {"vocabulary_size": tokenizer.vocabulary_size}
    architecture = architecture_of(settings, windows["train"], vocabulary)
    model = untrained(architecture, settings, lambda: tokenizer.tokens, say)
    together = min(settings.training.batch_size, len(windows["train"]))
    with (
        threads_for(architecture, settings.training) as threads,
        progress(settings.training.max_steps, together) as watch,
    ):
        say(size(architecture, windows["train"], threads))
        train(model, windows, settings.optimizer, settings.training, watch)
    return model


def _figures(
    model: Model, counts: KneserNey, encoded: Encoded, settings: Settings
) -> dict[str, Any]:
    """What `evaluate` and `oracle-conditional-entropy` measure, under their names."""
    figures: dict[str, Any] = {"kneser_ney": {}}
    for name, (windows, described) in encoded.items():
        scored_bytes = described["scored_bytes"]
        with threads_for(model.architecture, settings.training):
            scores = score(model, windows, batch_size=settings.evaluation.batch_size)
        counted = counts.log_probabilities(windows)
        figures[name] = report(scores, scored_bytes=scored_bytes)
        figures["kneser_ney"][name] = mean_loss(counted, scored_bytes=scored_bytes)
        if name == "validation":
            figures["interpolated"] = interpolations(scores.log_probabilities, counted)
    entropies = conditional_entropies(encoded["train"][0])
    figures["oracle"] = {
        f"k{each.order}": {"entropy_nats": each.entropy_nats} for each in entropies
    }
    return figures
