"""What a stage tells of its progress and its result."""

from itertools import pairwise

import pytest

from neural_ngram.evaluation.summary import show, summary
from neural_ngram.training.loop import Evaluation, Record
from neural_ngram.training.progress import Lines, pace

COUNTED = {
    "oracle": {"k2": {"entropy_nats": 1.0}},
    "kneser_ney": {"train": {"loss_nats": 2.0}, "validation": {"loss_nats": 3.0}},
}
MEASURED = {"tokens": 12345, "loss_nats": 2.5, "perplexity": 12.18, "bits_per_byte": 1.75}


def test_each_partition_stands_beside_its_floor_and_its_baseline(
    capsys: pytest.CaptureFixture[str],
):
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


@pytest.mark.promise("reliability")
def test_no_thirty_seconds_pass_without_a_line_in_steps_or_evaluations():
    now, written, record = 0.0, [], Record()
    lines = Lines(lambda text: written.append((now, text)), lambda done: "", lambda: now)
    for second in range(2400):  # an evaluation until 100 s, then one step per second
        now = float(second)
        if second == 100:
            record.evaluations.append(Evaluation(0, 4.0, 5.0))
        if second >= 100:
            record.batch_losses.append(3.0)
            lines.watch(record)
        lines.beat()
    times = [0.0, *(moment for moment, _ in written), 2400.0]
    assert max(later - earlier for earlier, later in pairwise(times)) <= 30
    assert len(written) < 2400 / 20
    assert [text for _, text in written[:4]] == [
        *["step       0   first evaluation"] * 3,
        "step       0   train 4.0000   validation 5.0000 nats",
    ]
    assert written[-1][1].startswith("step   2,")
    assert written[-1][1].endswith("batch 3.0000 nats")
