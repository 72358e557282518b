"""Inspecting a trained model: next tokens, neighbours, sizes, a picture of the embedding."""

from pathlib import Path

from neural_ngram.artifacts import write_bytes
from neural_ngram.cli.last_run import last_run, table
from neural_ngram.export.charts import embedding_chart, png
from neural_ngram.export.neighbours import nearest, principal_plane
from neural_ngram.model.architecture import parameter_count
from neural_ngram.training.evidence import table_sizes

__all__ = ["draw_embedding", "show_neighbours", "show_next", "show_parameters"]


def show_next(prompt: str, count: int) -> None:
    """The most probable next tokens after a prompt."""
    run = last_run()
    rows: list[tuple[object, ...]] = [
        (each.label, each.token, f"{each.probability:.4f}")
        for each in run.next_tokens(prompt, count)
    ]
    print(f"after {' '.join(map(run.tokenizer.label, run.context(prompt)))}")
    print(table(("token", "ID", "probability"), rows))


def show_neighbours(token: str, count: int) -> None:
    """The tokens nearest to one in embedding space."""
    run = last_run()
    identifier = run.tokenizer.look_up(token)
    embedding_VD = run.model.parameters["embedding"].numpy()
    rows: list[tuple[object, ...]] = [
        (run.tokenizer.label(n.token), n.token, f"{n.cosine:.4f}", f"{n.distance:.4f}")
        for n in nearest(embedding_VD, identifier, count)
    ]
    print(table(("token", "ID", "cosine", "distance"), rows))


def show_parameters(vocabulary: int | None) -> None:
    """The sizes of tables of counts for a vocabulary, beside the model of the last run."""
    model = last_run().model if vocabulary is None else None
    size = vocabulary if model is None else model.architecture.vocabulary_size
    rows: list[tuple[object, ...]] = [
        (name.replace("_", "-"), f"{cells:,}") for name, cells in table_sizes(size or 0, 3).items()
    ]
    if model is not None:
        rows.append(("this model", f"{parameter_count(model.architecture):,}"))
    print(table((f"V = {size:,}", "parameters"), rows))


def draw_embedding(file: Path) -> None:
    """A picture of the embedding table: each token at its position in the plane."""
    run = last_run()
    plane_V2, share = principal_plane(run.model.parameters["embedding"].numpy())
    labels = [run.tokenizer.label(token) for token in range(len(plane_V2))]
    write_bytes(file, png(embedding_chart(plane_V2, labels, share)))
    print(f"{file}: {len(labels):,} tokens, {share:.1%} of the variance of their embeddings shown")
