"""evaluate: the trained model on train and validation, between its floor and its baseline."""

from neural_ngram.pipeline.frame import enter

if __name__ == "__main__":
    enter()

import torch

from neural_ngram.artifacts import read_json, sha256_of_file, write_bytes
from neural_ngram.evaluation import storage
from neural_ngram.evaluation.decomposition import flat
from neural_ngram.evaluation.run import evaluate
from neural_ngram.evaluation.summary import show
from neural_ngram.export.charts import decomposition_png
from neural_ngram.model import storage as model_storage
from neural_ngram.model.threads import thread_count
from neural_ngram.ngram.storage import load_kneser_ney
from neural_ngram.pipeline import project
from neural_ngram.pipeline.console import say
from neural_ngram.pipeline.frame import run, sandbox
from neural_ngram.pipeline.project import EVALUATION, MODEL, ORACLE, TOKENIZER, WINDOWS
from neural_ngram.settings import Settings
from neural_ngram.tokens import tokenizer
from neural_ngram.tracking.run import find_run


def main(settings: Settings) -> None:
    """Score every window once, compare, save and log."""
    model, origin = model_storage.load(MODEL)
    torch.set_num_threads(thread_count(model.architecture, settings.training))
    counted, split = read_json(ORACLE / "figures.json"), read_json(project.SPLIT_REPORT)
    evaluation = evaluate(
        model,
        {name: storage.load_partition(WINDOWS / name, origin) for name in ("train", "validation")},
        load_kneser_ney(ORACLE / "kneser_ney.safetensors").log_probabilities,
        counted,
        unknown=tokenizer.load(TOKENIZER).unknown,
        batch_size=settings.evaluation.batch_size,
        source_entropies_nats=split["source_entropies_nats"],
        has_test=bool(split["documents"]["test"]),
    )
    for sentence in evaluation.sentences:
        say(sentence)
    show(evaluation.summary)
    sha256 = sha256_of_file(MODEL)
    storage.save(evaluation, EVALUATION, sha256)
    write_bytes(EVALUATION / "decomposition.png", decomposition_png(evaluation.parts))
    with find_run(sha256, project.run_name(settings), project.parameters(settings)) as tracked:
        tracked.boundary("evaluate", sandbox().kind)
        tracked.metrics(dict(flat(evaluation.figures)), settings.training.max_steps)
        tracked.metrics(dict(flat(counted | {"leakage": split["leakage"]})))
        tracked.artifact(EVALUATION, "evaluation")
        for table in ("entropies.csv", "discounts.csv"):
            tracked.artifact(ORACLE / table, "oracle")


if __name__ == "__main__":
    run(main)
