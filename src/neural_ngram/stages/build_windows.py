"""build-windows: train and validation documents to token streams."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from neural_ngram.artifacts import Column, sha256_of_file
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run
from neural_ngram.pipeline.project import SPLITS, TOKENIZER, WINDOWS
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows


def main(settings: Settings) -> None:
    """The same for each partition that a model may see."""
    tokenizer = tokenizers.load(TOKENIZER)
    for name in ("train", "validation"):
        documents = SPLITS / f"{name}.parquet"
        most = settings.windows.max_train_documents if name == "train" else None
        texts = Column(documents, "text", most)
        windows, counts = token_windows.encode(texts, tokenizer, settings.windows)
        origin = {
            "padding": settings.windows.padding,
            "vocabulary_size": tokenizer.vocabulary_size,
            "tokenizer_sha256": sha256_of_file(TOKENIZER / "tokenizer.json"),
            "documents_sha256": sha256_of_file(documents),
        }
        token_windows.save(windows, WINDOWS / name, origin | counts)
        say(
            f"{name}: {counts['documents']:,} documents "
            f"({counts['documents_without_window']:,} too short for a window), "
            f"{counts['windows']:,} windows, {counts['scored_bytes']:,} scored bytes"
        )


if __name__ == "__main__":
    run(main)
