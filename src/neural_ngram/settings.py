"""Every setting that can be varied: its name, type, default, range and meaning.

One frozen dataclass per group; `Settings` nests them under the names that users type
(`windows.context_length`, `optimizer.learning_rate`). The YAML files of `conf/` choose values;
nothing that is not named here can be set. `settings_of` reads a tree of plain values, and `check`
refuses values that are out of range and values that do not fit together across groups.
"""

import json
import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args, get_type_hints

from neural_ngram.choices.activations import ACTIVATIONS
from neural_ngram.choices.optimizers import OPTIMIZERS
from neural_ngram.choices.tokenizers import KINDS
from neural_ngram.errors import ConfigurationError

__all__ = [
    "BoundarySettings",
    "CorpusSettings",
    "EvaluationSettings",
    "GenerationSettings",
    "ModelSettings",
    "OptimizerSettings",
    "OracleSettings",
    "Settings",
    "SourceSettings",
    "SplitSettings",
    "TokenizerSettings",
    "TrainingSettings",
    "WindowSettings",
    "check",
    "check_model",
    "flatten",
    "nearest",
    "read_group",
    "settings_of",
]


_CONFIG = "conf/config.yaml"  # watched in place of a file that no setting names
SUM_TOLERANCE = 1e-9  # 0.9 + 0.1 may fall just short of 1


def _layer_files() -> list[str]:
    """The kinds of hidden layers that are files of their own, by name; none is imported.

    They compute with the tensor library, which takes seconds to import, and settings are read
    before a stage may import it. A dense layer goes by the name of its activation.
    """
    folder = Path(__file__).with_name("model") / "layers"
    return [file.name for file in iter_modules([str(folder)]) if file.name != "dense"]


LAYERS = tuple(_layer_files())
_TEST, _SEALED = "data/splits/test.parquet", "conf/evaluation/default.yaml"
_KINDS: dict[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    list[str]: "a list of texts",
}
_QUOTED: dict[Any, str] = {str: "'…'", list[str]: "['…']"}
BOUNDS = {
    "least": (operator.ge, "at least"),
    "above": (operator.gt, "above"),
    "most": (operator.le, "at most"),
    "below": (operator.lt, "below"),
}


def setting(default: Any, meaning: str, **limits: Any) -> Any:
    """A dataclass field; `limits` may hold `least`, `above`, `most`, `below` or `choices`."""
    metadata = {"meaning": meaning, **limits}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class SplitSettings:
    """How documents are divided into train, validation and test."""

    method: str = setting(
        "ratios",
        "ratios: shuffle groups, then cut; contiguous: cut the text in order at token counts; "
        "position: cut the text in order at fractions of its characters or bytes, possibly within "
        "a document; named: by file name, document ID or a file of lists; whole: hold nothing out: "
        "train is the whole corpus, validation equals train and test is empty",
        choices=("ratios", "contiguous", "position", "named", "whole"),
    )
    train: float = setting(
        0.8, "fraction in train; ratios: of the groups; position: of the text", above=0, below=1
    )
    validation: float = setting(
        0.1,
        "the same for validation; position: if both add up to 1, there is no test partition",
        above=0,
        below=1,
    )
    position_unit: str = setting(
        "characters",
        "position: unit of the fractions; a cut within a multi-byte character moves to its start",
        choices=("characters", "bytes"),
    )
    seed: int = setting(42, "ratios: seed of the shuffle", least=0)
    keep_duplicates_together: bool = setting(
        True, "ratios: put documents with the same text into the same partition"
    )
    keep_near_duplicates_together: bool = setting(
        False, "ratios: put near-duplicate documents into the same partition"
    )
    near_duplicate: float = setting(
        0.8,
        "Jaccard similarity of character 5-grams from which texts count as near duplicates",
        above=0,
        most=1,
    )
    most_overlap: float = setting(
        1.0,
        "maximum fraction of validation or test documents that have a near duplicate in train",
        least=0,
        most=1,
    )
    train_tokens: int = setting(0, "contiguous: whitespace tokens in train", least=0)
    validation_tokens: int = setting(0, "contiguous: whitespace tokens in validation", least=0)
    train_names: list[str] = setting([], "named: patterns of file names or document IDs in train")
    validation_names: list[str] = setting([], "named: the same for validation")
    test_names: list[str] = setting([], "named: the same for test")
    lists: str | None = setting(
        None, "named: JSON file with lists of document IDs under train, validation and test"
    )
    lists_dependency: str = setting(_CONFIG, "what DVC watches: the lists, if any")
    max_train_documents: int | None = setting(
        None, "keep only the first N documents of train; null keeps all", least=1
    )

    @property
    def has_test(self) -> bool:
        """Whether there is a test partition."""
        everything = self.method == "position" and self.train + self.validation > 1 - SUM_TOLERANCE
        return self.method != "whole" and not everything


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """A Markov source that generates a synthetic corpus, whose entropies are therefore known."""

    documents: int = setting(
        0, "number of synthetic documents; 0 reads the corpus instead", least=0
    )
    length: int = setting(10000, "characters per document", least=1)
    alphabet: str = setting("abcdefgh", "its characters, all distinct")
    order: int = setting(2, "number of preceding characters that the next depends on", least=0)
    concentration: float = setting(
        0.3,
        "concentration of the Dirichlet prior of its probabilities; lower is more predictable",
        above=0,
    )
    seed: int = setting(1, "seed of its probabilities and of the text", least=0)


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """What text is read, and how it is divided."""

    name: str = setting(
        "", "short name in tables and runs; derived from the path or URL of your own text"
    )
    path: str | None = setting(None, "file or folder to read; null downloads corpus.url")
    url: str | None = setting(None, "URL to download; separate several by spaces")
    sha256: str | None = setting(None, "SHA-256 of each download, in the order of the URLs")
    dependency: str = setting("", "what DVC watches: the path, or the preset that pins the URL")
    most_bytes: int = setting(10**9, "maximum size of a download in bytes, per file", least=1)
    files: list[str] = setting(
        [],
        "patterns of file names to read in a folder, such as *.conllu; empty reads all files with "
        "known extensions, which must then have the same format",
    )
    encoding: str = setting(
        "utf-8", "encoding of the files, by its Python name: latin-1, cp1252, utf-16, gb18030, …"
    )
    unit: str = setting(
        "document",
        "what becomes a document: the format's own document, a CoNLL-U sentence, "
        "or the whole corpus as one document, which keeps every character of a .txt file",
        choices=("document", "sentence", "corpus"),
    )
    document_mark: str = setting("", "word inserted before each document; empty for none")
    paragraph_mark: str = setting(
        "",
        "word inserted before each paragraph (paragraphs are separated by blank lines, in CoNLL-U "
        "by # newpar); empty for none",
    )
    minimum_frequency: int = setting(
        1,
        "words that occur less often in the whole corpus, including its validation and test parts, "
        "become <unk>; some published splits do this, although it uses more than train",
        least=1,
    )
    source: SourceSettings = field(default_factory=SourceSettings)
    split: SplitSettings = field(default_factory=SplitSettings)


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings:
    """What a token is."""

    kind: str = setting(
        "bpe",
        "byte-level BPE learned on train, single characters, or whitespace-separated words",
        choices=tuple(KINDS),
    )
    vocabulary_size: int = setting(
        512, "bpe: number of tokens, including special tokens and bytes", least=1, most=2**32
    )
    pattern: str = setting(
        "gpt2",
        "bpe; gpt2: merges stay within the pieces of the GPT-2 split pattern; none: merges may "
        "span a document",
        choices=("gpt2", "none"),
    )
    minimum_frequency: int = setting(1, "word: rarer words of train become <unk>", least=1)
    unknown: bool = setting(
        False, "character, word: map what does not occur in train to <unk>; false: raise an error"
    )
    markers: str = setting(
        "bos_eos",
        "special tokens: BOS and EOS as two tokens, as one shared token, or none",
        choices=("bos_eos", "shared", "none"),
    )


@dataclass(frozen=True, kw_only=True)
class WindowSettings:
    """What a model reads and predicts."""

    context_length: int = setting(4, "number of tokens that the model reads", least=1, most=100_000)
    padding: str = setting(
        "left",
        "left: pad with BOS so that every token is predicted; none: complete contexts only",
        choices=("left", "none"),
    )
    max_train_documents: int | None = setting(
        None,
        "use windows of the first N documents of train only, to overfit on purpose with the "
        "tokenizer learned on all of them; null uses all",
        least=1,
    )


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The network between context and logits."""

    embedding_width: int = setting(32, "width D of a token's embedding", least=1, most=2**20)
    hidden: str = setting(
        "swiglu",
        "kind of hidden layer",
        choices=(*LAYERS, *ACTIVATIONS, "none"),
    )
    hidden_width: int = setting(
        64, "width H of each hidden layer; unused when hidden is none", least=1, most=2**20
    )
    hidden_layers: int = setting(
        1, "number of stacked hidden layers; unused when hidden is none", least=1, most=100
    )
    hidden_bias: bool = setting(False, "bias in each hidden layer; not for swiglu and none")
    dropout: float = setting(
        0.0, "fraction of each hidden layer's outputs zeroed in training", least=0, below=1
    )
    direct: bool = setting(
        False, "connect the concatenated embeddings to the output as well (Bengio et al. 2003)"
    )
    output_bias: bool = setting(False, "bias in the output layer")
    tied_output: bool = setting(
        False, "use the transposed embedding as the output matrix; the widths must be equal"
    )
    initialisation: str = setting(
        "xavier_uniform",
        "xavier_uniform: Glorot & Bengio 2010; normal: N(0, initialisation_scale) everywhere; "
        "scaled: hidden layers by fan-in and activation, a small output layer",
        choices=("xavier_uniform", "normal", "scaled"),
    )
    initialisation_scale: float = setting(
        0.01, "standard deviation; normal: of every matrix; scaled: of the output layer", above=0
    )
    pretrained_embedding: str | None = setting(
        None, "file of word vectors in word2vec text format to start from; null starts at random"
    )
    freeze_embedding: bool = setting(False, "do not train the embedding")


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """How gradients become updates."""

    name: str = setting("adamw", "the optimizer", choices=tuple(OPTIMIZERS))
    learning_rate: float = setting(0.003, "step size", above=0)
    schedule: str = setting(
        "constant",
        "how the step size changes; constant; step: one drop; cosine: to zero at max_steps; "
        "inverse: divided by 1 + steps * schedule_decay (Bengio et al. 2003)",
        choices=("constant", "step", "cosine", "inverse"),
    )
    schedule_at: float = setting(
        0.5, "step: fraction of max_steps before the drop", above=0, below=1
    )
    schedule_factor: float = setting(0.1, "step: factor applied at the drop", above=0)
    schedule_decay: float = setting(1e-8, "inverse: decay per step", least=0)
    beta1: float = setting(0.9, "adam, adamw: decay of the mean of gradients", least=0, below=1)
    beta2: float = setting(0.999, "adam, adamw: decay of the mean of squares", least=0, below=1)
    epsilon: float = setting(1e-8, "adam, adamw: added to the root mean square", above=0)
    weight_decay: float = setting(
        0.0, "weight decay; decoupled for adamw, otherwise added to the gradient", least=0
    )
    decay_biases: bool = setting(False, "apply weight decay to biases as well")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Training steps, batches, checkpoints and arithmetic."""

    batch_size: int = setting(256, "windows per step", least=1, most=2**32)
    sampling: str = setting(
        "shuffle",
        "order of the windows; shuffle: a new random order every epoch; replacement: drawn "
        "uniformly with replacement; sequential: in text order",
        choices=("shuffle", "replacement", "sequential"),
    )
    vectors_dependency: str = setting(
        _CONFIG, "what DVC watches: model.pretrained_embedding, if any"
    )
    max_steps: int = setting(2000, "total number of training steps", least=1)
    evaluate_every: int = setting(
        500,
        "steps between full train and validation losses; also at step 0 and at the end",
        least=1,
    )
    checkpoint_every: int = setting(
        1000, "steps between checkpoints, from which an interrupted training resumes", least=1
    )
    patience: int | None = setting(
        None,
        "stop after this many validation losses in a row without a new best, and keep the best "
        "weights; null: never stop early, keep the last weights",
        least=1,
    )
    averaging: str = setting(
        "none",
        "ema: evaluate and keep an exponential moving average of the weights",
        choices=("none", "ema"),
    )
    averaging_decay: float = setting(0.999, "ema: decay per step", above=0, below=1)
    gradients: str = setting(
        "closed_form",
        "closed_form: derived by hand, in preallocated memory; autograd: the reference",
        choices=("closed_form", "autograd"),
    )
    products: str = setting(
        "full",
        "float32 matmul precision: full, or bf16, which keeps about three digits of each factor "
        "and is faster on processors with bf16 matrix units",
        choices=("full", "bf16"),
    )
    seed: int = setting(
        23, "seed of the initial weights, of the batch order and of dropout", least=0
    )
    dtype: str = setting(
        "float32", "arithmetic of weights and losses", choices=("float32", "float64")
    )
    threads: int | None = setting(
        None,
        "CPU threads of the tensor library; null: all cores for large steps, one for small ones",
        least=1,
        most=1024,
    )
    determinism: bool = setting(
        False,
        "bit-identical results with any number of threads, by a fixed order of summation in matrix "
        "products; slower on processors with instructions wider than AVX2",
    )
    probe: str = setting(
        "", "text whose last tokens are traced through the untrained network, as evidence"
    )
    replay: bool = setting(False, "train again from the same seed and compare bit for bit")


@dataclass(frozen=True, kw_only=True)
class OracleSettings:
    """What a model is compared with."""

    order: int | None = setting(
        None,
        "order of the Kneser-Ney baseline; null: one more than windows.context_length",
        least=1,
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """How a trained model is scored."""

    batch_size: int = setting(
        4096, "maximum number of windows scored at once; affects memory, not results", least=1
    )
    unseal_test: bool = setting(
        False, "score the test partition too, and record the test evaluation in ledger.jsonl"
    )
    test_documents: str = setting(
        _SEALED, f"what DVC watches: {_TEST} when unsealed; follows evaluation.unseal_test"
    )


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """How text is continued."""

    prompt: str = setting("", "text to continue; empty starts a new document")
    max_new_tokens: int = setting(60, "maximum number of new tokens", least=1)
    temperature: float = setting(0.8, "sampling temperature; 0 means greedy decoding", least=0)
    top_k: int | None = setting(
        None, "sample from the k most probable tokens; null disables top-k", least=1
    )
    top_p: float = setting(
        1.0,
        "sample from the fewest most probable tokens whose probabilities add up to at least top_p, "
        "after temperature and top_k; 1 disables top-p",
        above=0,
        most=1,
    )
    samples: int = setting(4, "number of sampled continuations besides the greedy one", least=0)
    seed: int = setting(7, "seed of the samples", least=0)


@dataclass(frozen=True, kw_only=True)
class BoundarySettings:
    """How a stage is kept from files that it does not declare."""

    mode: str = setting(
        "enforced",
        "enforced: by the kernel where it has Landlock, and by Python; audit: by Python alone; off",
        choices=("enforced", "audit", "off"),
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything, as one tree."""

    configuration_sha256: str = setting("", "digest of conf/ and of this schema, when composed")
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    windows: WindowSettings = field(default_factory=WindowSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    oracle: OracleSettings = field(default_factory=OracleSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    boundary: BoundarySettings = field(default_factory=BoundarySettings)


def flatten(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Each leaf of a settings tree: dotted name, value, metadata."""
    for leaf in fields(settings):
        value = getattr(settings, leaf.name)
        if is_dataclass(value):
            yield from flatten(value, f"{prefix}{leaf.name}.")
        else:
            yield prefix + leaf.name, value, dict(leaf.metadata)


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Checked settings from a tree of plain values, as params.yaml holds them.

    Raises ConfigurationError naming the first setting that is unknown, missing, of the wrong type,
    out of range or inconsistent with another. No value is converted to text.
    """
    return check(_read(Settings, values, ""))


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the known name that is most like `name`, or nothing."""
    names = list(known)
    ends = [each for each in names if each.rpartition(".")[2] == name.rpartition(".")[2]]
    found = get_close_matches(name, ends, 1, 0) or get_close_matches(name, names, 1)
    return f"; did you mean {found[0]}?" if found else ""


def _read(kind: type[Any], values: Any, prefix: str) -> Any:
    types = get_type_hints(kind)
    if not isinstance(values, Mapping):
        raise ConfigurationError(
            f"{prefix[:-1]} is {values!r}, but it is a group of settings ({', '.join(types)}); set "
            f"one, or choose a preset: run `neural-ngram compose {prefix[:-1]}={values}` first"
        )
    for name in values:
        if name not in types:
            known = (each for each, _, _ in flatten(Settings()))
            raise ConfigurationError(
                f"there is no setting {prefix}{name}{nearest(f'{prefix}{name}', known)} "
                "(docs/settings.md lists them all)"
            )
    read = {}
    for leaf in fields(kind):
        name, wanted = prefix + leaf.name, types[leaf.name]
        if leaf.name not in values:
            raise ConfigurationError(f"{name} is missing; run `neural-ngram compose`")
        value = values[leaf.name]
        if is_dataclass(wanted):
            read[leaf.name] = _read(wanted, value, f"{name}.")  # type: ignore[arg-type]
        else:
            read[leaf.name] = _fitted(name, value, wanted, leaf.metadata["meaning"])
    return kind(**read)


def _fitted(name: str, value: Any, wanted: Any, meaning: str) -> Any:
    """A value as the type of its setting, or ConfigurationError."""
    allowed = get_args(wanted) if type(None) in get_args(wanted) else (wanted,)
    if value is None and len(allowed) > 1:
        return None
    kind = allowed[0]
    if kind is float and type(value) is int:
        return float(value)
    if kind == list[str]:
        fits = isinstance(value, list) and all(type(each) is str for each in value)
    else:
        fits = type(value) is kind
    if fits:
        return value
    shown = json.dumps(value, ensure_ascii=False)
    complaint = f"{name} is {shown}, but must be {_KINDS[kind]} ({meaning})"
    if kind in _QUOTED:
        inner = f"{name}={_QUOTED[kind]}"
        complaint += f'; for a text, put quotation marks inside those of the shell: "{inner}"'
    raise ConfigurationError(complaint)


def check(settings: Settings) -> Settings:
    """The same settings, or ConfigurationError naming the first one that cannot be right."""
    for name, value, limits in flatten(settings):
        complaint = _range_complaint(value, limits) if value is not None else None
        if complaint:
            raise ConfigurationError(
                f"{name} is {value!r}, but must be {complaint} ({limits['meaning']})"
            )
    _check_across_groups(settings)
    return settings


def read_group(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Settings of one group from plain values, as a file describes them.

    Raises ConfigurationError naming the value that is missing, extra, of the wrong type or out of
    range.
    """
    types = get_type_hints(kind)
    if set(values) != set(types):
        raise ConfigurationError(
            f"expected the settings {', '.join(types)}, but found {', '.join(map(str, values))}"
        )
    for name, value in values.items():
        fits = isinstance(value, types[name]) or (types[name] is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and types[name] is not bool):
            wanted = getattr(types[name], "__name__", types[name])
            raise ConfigurationError(f"{name} is {value!r}, but must be of type {wanted}")
    group = kind(**values)
    for name, value, limits in flatten(group):
        complaint = _range_complaint(value, limits) if value is not None else None
        if complaint:
            raise ConfigurationError(f"{name} is {value!r}, but must be {complaint}")
    return group


def _range_complaint(value: Any, limits: dict[str, Any]) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "a finite number"
    if "choices" in limits and value not in limits["choices"]:
        return "one of " + ", ".join(limits["choices"])
    bounds = [(*BOUNDS[name], limits[name]) for name in BOUNDS if name in limits]
    if all(holds(value, limit) for holds, _, limit in bounds):
        return None
    return " and ".join(f"{words} {limit}" for _, words, limit in bounds)


def check_model(settings: ModelSettings) -> None:
    """Raise ConfigurationError when parts of the model do not fit together."""
    kind, widths = settings.hidden, (settings.hidden_width, settings.embedding_width)
    trains_nothing = settings.tied_output and settings.freeze_embedding and not settings.output_bias
    if kind not in ACTIVATIONS and settings.hidden_bias:
        raise ConfigurationError(
            f"model.hidden_bias=true, but the layers of model.hidden={kind} have none; "
            "set model.hidden_bias=false, or model.hidden to " + ", ".join(ACTIVATIONS)
        )
    if kind == "none" and settings.direct:
        raise ConfigurationError(
            "model.direct=true with model.hidden=none would connect the embeddings to the output "
            "twice; set model.direct=false"
        )
    if kind == "none" and settings.dropout:
        raise ConfigurationError(
            f"model.dropout={settings.dropout:g} drops hidden units, but model.hidden=none has "
            "none; set model.dropout=0"
        )
    if kind == "none" and trains_nothing:
        raise ConfigurationError(
            "model.freeze_embedding=true leaves nothing to train: the output is tied to the "
            "embedding and there is no hidden layer; change one of these settings"
        )
    if kind != "none" and settings.tied_output and widths[0] != widths[1]:
        raise ConfigurationError(
            f"model.tied_output=true needs model.hidden_width ({widths[0]}) equal to "
            f"model.embedding_width ({widths[1]})"
        )


def _check_watched(settings: Settings) -> None:
    """What DVC watches follows the setting that names the file, and opens no other file."""
    split, embedding = settings.corpus.split, settings.model.pretrained_embedding
    lists, vectors = split.lists_dependency, settings.training.vectors_dependency
    for name, file, follower, watched in (
        ("corpus.split.lists", split.lists, "corpus.split.lists_dependency", lists),
        ("model.pretrained_embedding", embedding, "training.vectors_dependency", vectors),
    ):
        if watched not in (file, _CONFIG):
            given = "null" if file is None else repr(file)
            raise ConfigurationError(
                f"{follower} is {watched!r}, but it only says what DVC watches, and follows {name} "
                f"({given}) when conf/ is composed; set {name} alone, with `dvc exp run -S` or "
                "`neural-ngram compose`"
            )


def _check_corpus(settings: CorpusSettings) -> None:
    """Raise ConfigurationError when the corpus cannot be read or divided as the settings say."""
    split, both = settings.split, settings.split.train + settings.split.validation
    if split.method == "ratios" and both >= 1:
        raise ConfigurationError(
            f"corpus.split.train + corpus.split.validation is {both:g}; "
            "it must be below 1 so that something is left for test"
        )
    if split.method == "position" and both > 1 + SUM_TOLERANCE:
        raise ConfigurationError(
            f"corpus.split.train + corpus.split.validation is {both:g}; "
            "it must be at most 1 (at 1 there is no test partition)"
        )
    if settings.unit == "sentence" and settings.paragraph_mark:
        raise ConfigurationError(
            f"corpus.paragraph_mark is {settings.paragraph_mark!r}, but under corpus.unit=sentence "
            "no document has paragraphs; set corpus.unit=document"
        )
    try:
        " ".encode(settings.encoding)
    except (LookupError, ValueError):
        raise ConfigurationError(
            f"corpus.encoding is {settings.encoding!r}, which is not a text encoding known to "
            "Python; set it to utf-8, latin-1, cp1252, utf-16 or gb18030, for example"
        ) from None


def _check_across_groups(settings: Settings) -> None:
    check_model(settings.model)
    _check_watched(settings)
    split = settings.corpus.split
    _check_corpus(settings.corpus)
    if split.method == "whole" and settings.training.patience:
        raise ConfigurationError(
            f"training.patience={settings.training.patience} watches validation, but under "
            "corpus.split.method=whole validation equals train; set training.patience=null"
        )
    if settings.training.determinism and settings.training.products == "bf16":
        raise ConfigurationError(
            "training.determinism=true fixes the order of summation at full matmul precision only; "
            "set training.products=full"
        )
    longest = settings.windows.context_length + 1
    if settings.oracle.order is not None and settings.oracle.order > longest:
        raise ConfigurationError(
            f"oracle.order is {settings.oracle.order}, but a window holds {longest} tokens "
            "(windows.context_length and the target); lower oracle.order"
        )
    evaluation = settings.evaluation
    if evaluation.unseal_test and not split.has_test:
        raise ConfigurationError(
            f"evaluation.unseal_test=true, but corpus.split.method={split.method} leaves no test "
            "partition; set evaluation.unseal_test=false, or another split"
        )
    if evaluation.test_documents != (_TEST if evaluation.unseal_test else _SEALED):
        raise ConfigurationError(
            f"evaluation.unseal_test is {evaluation.unseal_test} but evaluation.test_documents is "
            f"{evaluation.test_documents!r}, which follows it when conf/ is composed; unseal with "
            "`dvc exp run -S evaluation.unseal_test=true`, or with `neural-ngram compose` and "
            "`dvc repro`"
        )
    if settings.windows.padding == "left" and settings.tokenizer.markers == "none":
        raise ConfigurationError(
            "windows.padding=left pads with BOS, but tokenizer.markers=none has no BOS; "
            "set windows.padding=none, or tokenizer.markers to bos_eos or shared"
        )
    _check_split(split)
    _check_openings(settings)


def _check_split(split: SplitSettings) -> None:
    """Raise ConfigurationError when train or validation would be empty for any corpus."""
    held = ("train", "validation")
    if split.method == "contiguous":
        names = [f"{name}_tokens" for name in held]
    elif split.method == "named" and split.lists is None:
        names = [f"{name}_names" for name in held]
    else:
        return
    for name in names:
        if not getattr(split, name):
            raise ConfigurationError(
                f"corpus.split.method={split.method}, but corpus.split.{name} is "
                f"{getattr(split, name)}, which leaves that partition empty; set it"
            )


def _check_openings(settings: Settings) -> None:
    """Raise ConfigurationError for a text that is too short to fill a context without BOS.

    A text has at most as many tokens as bytes (bpe), characters or words.
    """
    if settings.tokenizer.markers != "none":
        return
    length = settings.windows.context_length
    for name, text in (
        ("generation.prompt", settings.generation.prompt),
        ("training.probe", settings.training.probe),
    ):
        pieces = {"bpe": text.encode(), "character": text, "word": text.split()}
        most = len(pieces[settings.tokenizer.kind])
        if most < length and (text or name == "generation.prompt"):
            raise ConfigurationError(
                f"{name} is {text!r}, which is at most {most} tokens, but the model reads {length} "
                "and tokenizer.markers=none leaves no BOS to pad it with; give a longer "
                f"{name}, or set tokenizer.markers to bos_eos or shared"
            )
