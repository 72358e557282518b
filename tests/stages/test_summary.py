"""What a stage tells of its progress and its result."""

import pytest

from neural_ngram.stages.progress import pace
from neural_ngram.stages.summary import show, summary

COUNTED = {
    "oracle": {"k2": {"entropy_nats": 1.0}},
    "kneser_ney": {"train": {"loss_nats": 2.0}, "validation": {"loss_nats": 3.0}},
}
MEASURED = {"tokens": 12345, "loss_nats": 2.5, "perplexity": 12.18, "bits_per_byte": 1.75}


def test_each_partition_stands_beside_its_floor_and_its_rival(capsys: pytest.CaptureFixture[str]):
    test = {"tokens": 7, "loss_nats": 900.0, "kneser_ney": {"loss_nats": 4.0}}  # no exp of 900
    metrics = {"test": test, "train": MEASURED, "validation": MEASURED, "gap": {}}
    show(summary(metrics, COUNTED, 2))
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["train", "12,345", "2.5000", "12.18", "1.7500", "1.0000", "2.0000"],
        ["validation", "12,345", "2.5000", "12.18", "1.7500", "3.0000"],
        ["test", "7", "900.0000", "inf", "nan", "4.0000"],
    ]


def test_the_pace_counts_from_the_step_that_a_training_goes_on_from():
    times = iter([100.0, 110.0])
    measured = pace(1000, batch_size=64, clock=lambda: next(times))
    assert measured(300) == ""
    assert measured(400) == "640 tokens/s   0:01:00 left"
