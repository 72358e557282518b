"""What can go wrong, as one tree.

NeuralNgramError
├── ConfigurationError    a setting is unknown, of the wrong type, out of range or stale
├── BoundaryError         a stage tries to read a file closed to it, or a partition leaks
├── CorpusError           a corpus is missing, empty, badly encoded or badly formed
├── PartitionError        a split leaves a partition empty or names documents that do not exist
├── TokenizerError        a tokenizer cannot be learned, loaded or applied
├── WindowError           a token stream yields no window, or an ID does not fit
├── ModelError            a model's shapes, names or inputs do not belong together
├── TrainingError         training cannot continue (the loss is no longer finite)
├── TrackingError         a store of runs does not accept what is sent to it
└── ArtifactError         a file that a stage wrote is missing, damaged or made from other inputs

Each message says what is wrong, the offending value, where it is, and what to do.
"""

__all__ = [
    "ArtifactError",
    "BoundaryError",
    "ConfigurationError",
    "CorpusError",
    "ModelError",
    "NeuralNgramError",
    "PartitionError",
    "TokenizerError",
    "TrackingError",
    "TrainingError",
    "WindowError",
]


class NeuralNgramError(Exception):
    """Base of every error that a user can cause; stages print it on one line and exit with 1."""


class ConfigurationError(NeuralNgramError):
    """A setting is unknown, of the wrong type, out of range or stale."""


class BoundaryError(NeuralNgramError):
    """A stage tries to read a file closed to it, or a partition leaks into another."""


class CorpusError(NeuralNgramError):
    """A corpus is missing, empty, badly encoded or badly formed."""


class PartitionError(NeuralNgramError):
    """A split leaves a partition empty or names documents that do not exist."""


class TokenizerError(NeuralNgramError):
    """A tokenizer cannot be learned, loaded or applied."""


class WindowError(NeuralNgramError):
    """A token stream yields no window, or an ID does not fit."""


class ModelError(NeuralNgramError):
    """A model's shapes, names or inputs do not belong together."""


class TrainingError(NeuralNgramError):
    """Training cannot continue."""


class TrackingError(NeuralNgramError):
    """A store of runs does not accept what is sent to it."""


class ArtifactError(NeuralNgramError):
    """A file that a stage wrote is missing, damaged or made from other inputs."""
