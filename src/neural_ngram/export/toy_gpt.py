"""A linear model as the CSV tables of the Toy-GPT series, which spreadsheets and its pages read.

Dimension letters: V vocabulary, D embedding width, K = C * D.

    00_meta.json              corpus, settings, and what the other files are
    01_vocabulary.csv         token_id, token, frequency
    02_model_weights.csv      one row per input dimension (K), one column per token; four decimals
    03_token_embeddings.csv   token_id, token, dim_0 …; six decimals
    train_log.csv             epoch, avg_loss, accuracy

The format has no place for the output bias: it is in the model file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from neural_ngram.errors import ModelError
from neural_ngram.model.network import Model
from neural_ngram.settings import Settings

__all__ = ["FILES", "embedding_table", "meta", "training_log", "vocabulary_table", "weight_table"]

FILES = ("00_meta.json", "01_vocabulary.csv", "02_model_weights.csv", "03_token_embeddings.csv")
NOTES = (
    "accuracy in train_log.csv is that of the weights after the epoch; avg_loss is the mean over "
    "the epoch's steps, each before its update.",
    "The output bias is not part of this format.",
)


def vocabulary_table(tokens: Sequence[str], frequency_V: NDArray[np.integer]) -> pd.DataFrame:
    """Columns token_id, token, frequency."""
    return pd.DataFrame(
        {"token_id": range(len(tokens)), "token": tokens, "frequency": frequency_V[: len(tokens)]}
    )


def weight_table(model: Model, tokens: Sequence[str]) -> pd.DataFrame:
    """The output matrix: one row per input dimension (K), one column per token.

    Raises ModelError when the model has a hidden layer.
    """
    settings = model.architecture.settings
    if settings.hidden != "none" or settings.tied_output:
        raise ModelError(
            f"model.hidden={settings.hidden} with model.tied_output={settings.tied_output} is not "
            "a linear model with its own output matrix, the only kind the Toy-GPT format can hold; "
            "train one with model=linear"
        )
    output_KV = model.parameters["output"].detach().numpy()
    rows = [[f"input_dim_{k}", *_fixed(row, 4)] for k, row in enumerate(output_KV)]
    return pd.DataFrame(rows, columns=["input_token", *tokens])


def embedding_table(model: Model, tokens: Sequence[str]) -> pd.DataFrame:
    """One row per token: its ID, its text, and its D numbers."""
    embedding_VD = model.parameters["embedding"].detach().numpy()
    rows = [[i, t, *_fixed(embedding_VD[i], 6)] for i, t in enumerate(tokens)]
    names = [f"dim_{k}" for k in range(embedding_VD.shape[1])]
    return pd.DataFrame(rows, columns=["token_id", "token", *names])


def training_log(
    batch_losses: NDArray[np.float64], accuracies: Mapping[int, float], steps_an_epoch: int
) -> pd.DataFrame:
    """Columns epoch, avg_loss, accuracy, as text.

    accuracies: by step; that of an epoch is empty unless it was measured at its last step.
    """
    epochs = len(batch_losses) // steps_an_epoch
    means = batch_losses[: epochs * steps_an_epoch].reshape(epochs, -1).mean(axis=1)
    measured = [accuracies.get((epoch + 1) * steps_an_epoch) for epoch in range(epochs)]
    return pd.DataFrame(
        {
            "epoch": range(1, epochs + 1),
            "avg_loss": [f"{mean:.8f}" for mean in means],
            "accuracy": ["" if share is None else f"{share:.6f}" for share in measured],
        }
    )


def meta(settings: Settings, corpus: Mapping[str, Any], *, vocabulary: int, epochs: int) -> Any:
    """The content of `00_meta.json`; `corpus` describes the text that was read."""
    pairs = "Training pairs are derived by sliding a fixed-size context window over the tokens."
    return {
        "artifacts": {name: name for name in FILES},
        "concepts": {
            "context": "The fixed number of preceding tokens that the next one is predicted from.",
            "cross_entropy_loss": "Minus the mean log probability of the right next token.",
            "gradient_descent": "Weights move in small steps against the gradient of the loss.",
            "softmax": "Scores become probabilities: exponentials divided by their sum.",
            "token": "What the tokenizer makes of text: a word, for example.",
            "vocabulary": "The distinct tokens, each with its ID.",
        },
        "corpus": {"description": pairs, **corpus},
        "model_kind": "embeddings",
        "notes": list(NOTES),
        "repo_name": "neural-ngram",
        "training": {
            "epoch_definition": "One epoch is a complete pass through all training pairs.",
            "epochs": epochs,
            "learning_rate": settings.optimizer.learning_rate,
        },
        "vocab_size": vocabulary,
    }


def _fixed(values: NDArray[np.floating], decimals: int) -> list[str]:
    return [f"{value:.{decimals}f}" if value else "0" for value in values]
