"""train: a model from the windows of train; validation is only scored."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

from neural_ngram.artifacts import write_csv, write_json
from neural_ngram.model import storage
from neural_ngram.pipeline import project
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.project import MODEL, SPLITS, TOKENIZER, TRAINING, WINDOWS
from neural_ngram.settings import Settings
from neural_ngram.tracking.run import start_run
from neural_ngram.training.checkpoints import Checkpoints
from neural_ngram.training.evidence import curves, losses
from neural_ngram.training.live import watched
from neural_ngram.training.loop import resume
from neural_ngram.training.progress import outcome
from neural_ngram.training.start import identity, prepare, replays


def main(settings: Settings) -> float:
    """Train, save weights, curves and evidence, log a run; go on where one was interrupted.

    Returns the validation loss in nats of the weights that are kept, which a sweep makes smaller.
    """
    start = prepare(settings, WINDOWS, TOKENIZER, say)
    shaping, name = project.parameters(settings), project.run_name(settings)
    known = identity(settings, shaping, WINDOWS, project.code_sha256("train"))
    checkpoints = Checkpoints(project.cache() / "checkpoints", known, say)
    with checkpoints.lock():
        with start_run(name, shaping | start.sizes, checkpoints.key, live=True) as tracked:
            tracked.boundary("train", sandbox().kind)
            tracked.kill(checkpoints.abandoned())
            for part, origin in start.origins.items():
                tracked.dataset(part, origin["documents_sha256"], WINDOWS / part)
            with watched(tracked, settings, len(start.windows["train"])) as watch:
                record = resume(start.model, start.windows, settings, watch, checkpoints)
            for sentence in outcome(record, start.model.architecture.vocabulary_size):
                say(sentence)
            storage.save(start.model, MODEL, start.origin)
            for curve, table in curves(record).items():
                write_csv(TRAINING / f"{curve}.csv", table)
            evidence = start.evidence | losses(record) | {"sha256": start.hashes(MODEL)}
            # What this process cannot open, it neither encoded nor scored.
            evidence["test_text_encoded_or_scored"] = not sandbox().close(SPLITS / "test.parquet")
            if settings.training.replay:
                evidence["same_seed_replays_bitwise"] = replays(start, record, settings, TOKENIZER)
            write_json(TRAINING / "evidence.json", evidence)
            tracked.tags({f"{of}_sha256": value for of, value in evidence["sha256"].items()})
            tracked.artifact(MODEL.parent, "model")
            tracked.artifact(TRAINING, "training")
        checkpoints.remove()
    return record.kept.validation_loss_nats


if __name__ == "__main__":
    run(main)
