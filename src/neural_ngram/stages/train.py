"""train: a model from the windows of train; validation is only scored."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from neural_ngram.artifacts import sha256_of_file, write_csv, write_json
from neural_ngram.model import storage as model_storage
from neural_ngram.model.architecture import parameter_count
from neural_ngram.model.network import Model
from neural_ngram.model.threads import thread_count
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.project import (
    MODEL,
    SPLITS,
    TOKENIZER,
    TRAINING,
    WINDOWS,
    cache,
    code_sha256,
    parameters,
    run_name,
)
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tokens import windows as token_windows
from neural_ngram.tokens.prompt import context_of
from neural_ngram.tracking.run import Run, start_run
from neural_ngram.tracking.spool import MODEL_TAG
from neural_ngram.training.checkpoints import Checkpoints
from neural_ngram.training.evidence import evidence_of_start, losses
from neural_ngram.training.live import live
from neural_ngram.training.loop import Record, resume, train
from neural_ngram.training.progress import progress
from neural_ngram.training.start import architecture_of, untrained

Watch = Callable[[Record], None]


def main(settings: Settings) -> float:
    """Train, save weights, curves and evidence, log a run; go on where one was interrupted.

    Returns the validation loss in nats of the weights that are kept, which a sweep makes smaller.
    """
    loaded = {name: token_windows.load(WINDOWS / name) for name in ("train", "validation")}
    windows = {name: part for name, (part, _) in loaded.items()}
    origins = {name: origin for name, (_, origin) in loaded.items()}
    architecture = architecture_of(settings, *loaded["train"])
    count = parameter_count(architecture)
    threads = thread_count(architecture, settings.training)
    say(
        f"{count:,} parameters, {len(windows['train']):,} windows of train, "
        f"{threads} thread{'s' * (threads > 1)}"
    )
    torch.set_num_threads(threads)
    model = untrained(architecture, settings)
    probed = _probed(settings, windows["train"])
    evidence = evidence_of_start(model, windows, probed, settings.training)
    described = parameters(settings) | {"parameters": count, "threads": threads}
    checkpoints = Checkpoints(cache() / "checkpoints", _identity(settings), say)
    with checkpoints.lock():
        with start_run(run_name(settings), described, checkpoints.key, live=True) as tracked:
            tracked.boundary("train", sandbox().kind)
            tracked.kill(checkpoints.abandoned())
            for name, origin in origins.items():
                tracked.dataset(name, origin["documents_sha256"], WINDOWS / name)
            together = min(settings.training.batch_size, len(windows["train"]))
            with (
                progress(settings.training.max_steps, together) as show,
                live(tracked, settings, together) as send,
            ):
                record = resume(model, windows, settings, _both(show, send), checkpoints)
            say(
                f"initial loss {record.evaluations[0].train_loss_nats:.4f} nats (a uniform model: "
                f"ln V = {math.log(architecture.vocabulary_size):.4f})"
            )
            _save(model, record, origins["train"])
            evidence |= losses(record) | {"sha256": _hashes(origins)}
            # What this process cannot open, it neither encoded nor scored.
            evidence["test_text_encoded_or_scored"] = not sandbox().close(SPLITS / "test.parquet")
            if settings.training.replay:
                again = untrained(architecture, settings)
                repeated = train(again, windows, settings.optimizer, settings.training)
                evidence["same_seed_replays_bitwise"] = repeated == record and bool(
                    torch.equal(again.flat, model.flat)
                )
            write_json(TRAINING / "evidence.json", evidence)
            _log(tracked, origins)
        checkpoints.remove()
    return record.kept.validation_loss_nats


def _identity(settings: Settings) -> dict[str, dict[str, Any]]:
    """All that the weights and curves of a training depend on."""
    files = [file for folder in ("train", "validation") for file in (WINDOWS / folder).iterdir()]
    pretrained = settings.model.pretrained_embedding
    files += [Path(pretrained)] if pretrained else []
    return {
        "settings": parameters(settings),
        "data": {file.as_posix(): sha256_of_file(file) for file in sorted(files)},
        "code": {"neural_ngram": code_sha256("train"), "torch": torch.__version__},
    }


def _probed(settings: Settings, train: token_windows.Windows) -> list[int]:
    """The context of `training.probe`; without one, of the first window of train."""
    if not settings.training.probe:
        first: list[int] = train.contexts(slice(1))[0].tolist()
        return first
    tokenizer = tokenizers.load(TOKENIZER)
    return context_of(settings.training.probe, tokenizer, train.context_length)


def _hashes(origins: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {
        "model": sha256_of_file(MODEL),
        "tokenizer": origins["train"]["tokenizer_sha256"],
        **{f"{name}_documents": origin["documents_sha256"] for name, origin in origins.items()},
    }


def _save(model: Model, record: Record, origin: dict[str, Any]) -> None:
    model_storage.save(
        model, MODEL, {key: origin[key] for key in ("tokenizer_sha256", "documents_sha256")}
    )
    if record.kept_step < len(record.batch_losses):
        say(f"kept the weights of step {record.kept_step:,}, the best on validation")
    write_csv(TRAINING / "evaluations.csv", pd.DataFrame(map(asdict, record.evaluations)))
    losses = pd.DataFrame({"batch_loss_nats": record.batch_losses})
    losses.insert(0, "step", range(1, len(losses) + 1))
    write_csv(TRAINING / "batches.csv", losses)


def _both(first: Watch, second: Watch) -> Watch:
    def watch(record: Record) -> None:
        first(record)
        second(record)

    return watch


def _log(tracked: Run, origins: dict[str, dict[str, Any]]) -> None:
    tracked.tags(
        {MODEL_TAG: sha256_of_file(MODEL)}
        | {"tokenizer_sha256": origins["train"]["tokenizer_sha256"]}
        | {f"{name}_documents_sha256": o["documents_sha256"] for name, o in origins.items()}
    )
    tracked.artifact(MODEL.parent, "model")
    tracked.artifact(TRAINING, "training")


if __name__ == "__main__":
    run(main)
