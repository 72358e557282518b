"""The start of a training: its windows, its initial model, and the data both come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from neural_ngram.artifacts import sha256_of_file
from neural_ngram.model.architecture import Architecture, parameter_count
from neural_ngram.model.network import Model, initialise, place_embedding
from neural_ngram.model.threads import thread_count
from neural_ngram.model.vectors import read_word2vec
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.prompt import context_of
from neural_ngram.tokens.windows import Windows
from neural_ngram.training.evidence import evidence_of_start
from neural_ngram.training.loop import Record, train

__all__ = [
    "Start",
    "architecture_of",
    "identity",
    "prepare",
    "replays",
    "size",
    "tokens_of",
    "untrained",
]

Say = Callable[[str], object]
Tokens = Callable[[], Sequence[str]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """A model before its first step, and the windows that it is trained and scored on.

    windows, origins: of `train` and `validation`, and the descriptions that they were saved with.
    evidence: of the model before its first step, as `evidence_of_start` computes it.
    """

    windows: dict[str, Windows]
    origins: dict[str, dict[str, Any]]
    model: Model
    threads: int
    evidence: dict[str, Any]

    @property
    def sizes(self) -> dict[str, int]:
        """How many weights there are, and how many threads compute with them."""
        count = parameter_count(self.model.architecture)
        return {"parameters": count, "threads": self.threads}

    def hashes(self, saved: Path) -> dict[str, str]:
        """Hexadecimal SHA-256 of the saved model, the tokenizer and each partition's documents."""
        documents = {f"{n}_documents": o["documents_sha256"] for n, o in self.origins.items()}
        tokenizer = self.origins["train"]["tokenizer_sha256"]
        return {"model": sha256_of_file(saved), "tokenizer": tokenizer, **documents}

    @property
    def origin(self) -> dict[str, str]:
        """What the weights are saved with: the hashes of their tokenizer and documents."""
        names = ("tokenizer_sha256", "documents_sha256")
        return {name: self.origins["train"][name] for name in names}


def prepare(settings: Settings, windows: Path, tokenizer: Path, say: Say) -> Start:
    """Load windows, set torch's number of threads, and draw fresh weights.

    windows, tokenizer: the folders that `build-windows` and `learn-bpe` fill.

    Raises ArtifactError when a file is missing or damaged, ModelError when pretrained embeddings
    do not fit.
    """
    loaded = {name: token_windows.load(windows / name) for name in ("train", "validation")}
    architecture = architecture_of(settings, *loaded["train"])
    threads = thread_count(architecture, settings.training)
    say(size(architecture, loaded["train"][0], threads))
    torch.set_num_threads(threads)
    model = untrained(architecture, settings, tokens_of(tokenizer), say)
    parts = {name: part for name, (part, _) in loaded.items()}
    probed = _probed(settings, parts["train"], tokenizer)
    return Start(
        windows=parts,
        origins={name: origin for name, (_, origin) in loaded.items()},
        model=model,
        threads=threads,
        evidence=evidence_of_start(model, parts, probed, settings.training),
    )


def size(architecture: Architecture, train: Windows, threads: int) -> str:
    """How large a training is, in one line: parameters, windows of train, threads."""
    return (
        f"{parameter_count(architecture):,} parameters, {len(train):,} train windows, "
        f"{threads} thread{'s' * (threads > 1)}"
    )


def architecture_of(settings: Settings, train: Windows, origin: dict[str, Any]) -> Architecture:
    """The architecture for the windows of train and the description that they were saved with."""
    vocabulary_size: int = origin["vocabulary_size"]
    return Architecture(
        vocabulary_size=vocabulary_size,
        context_length=train.context_length,
        settings=settings.model,
    )


def untrained(architecture: Architecture, settings: Settings, tokens: Tokens, say: Say) -> Model:
    """Fresh weights, with pretrained embeddings if the settings ask for them.

    tokens: gives the (V,) tokens as the tokenizer writes them; called for pretrained embeddings.
    """
    dtype = getattr(torch, settings.training.dtype)
    model = initialise(architecture, SplitMix64(settings.training.seed), dtype)
    _place_pretrained(model, settings.model, tokens, say)
    return model


def tokens_of(tokenizer: Path) -> Tokens:
    """The tokens of a saved tokenizer, which is read when they are called for."""
    return lambda: tokenizers.load(tokenizer).tokens


def _place_pretrained(model: Model, settings: ModelSettings, tokens: Tokens, say: Say) -> None:
    if settings.pretrained_embedding is None:
        return
    wanted = {token: identifier for identifier, token in enumerate(tokens())}
    ids, vectors = read_word2vec(Path(settings.pretrained_embedding), wanted)
    place_embedding(model, ids, vectors)
    say(f"{len(ids):,} of {len(wanted):,} embeddings read from {settings.pretrained_embedding}")


def _probed(settings: Settings, train: Windows, tokenizer: Path) -> list[int]:
    """(C,) the context of `training.probe`, or of the first train window when it is empty."""
    if not settings.training.probe:
        first: list[int] = train.contexts(slice(1))[0].tolist()
        return first
    return context_of(settings.training.probe, tokenizers.load(tokenizer), train.context_length)


def identity(
    settings: Settings, shaping: dict[str, object], windows: Path, code_sha256: str
) -> dict[str, dict[str, Any]]:
    """Everything on which the weights and curves of a training depend.

    shaping: every setting that does, by dotted name. windows: the folder with those of each
    partition.
    """
    files = [file for name in ("train", "validation") for file in (windows / name).iterdir()]
    pretrained = settings.model.pretrained_embedding
    files += [Path(pretrained)] if pretrained else []
    return {
        "settings": shaping,
        "data": {file.as_posix(): sha256_of_file(file) for file in sorted(files)},
        "code": {"neural_ngram": code_sha256, "torch": torch.__version__},
    }


def replays(start: Start, record: Record, settings: Settings, tokenizer: Path) -> bool:
    """Whether training again from the same seed gives the same record and weights, bit for bit.

    start, record: of the first training, which is over. Raises what `train` raises.
    """
    again = untrained(start.model.architecture, settings, tokens_of(tokenizer), lambda _: None)
    repeated = train(again, start.windows, settings.optimizer, settings.training)
    return repeated == record and bool(torch.equal(again.flat, start.model.flat))
