"""With training.determinism the weights and losses are the same bytes on one thread and on two."""

import shutil
from pathlib import Path

import pytest

LARGE_STEPS = ("training.batch_size=3000", "training.max_steps=4", "training.evaluate_every=2")
MODELS = {
    "every layer that has sums of its own": (
        *("model.hidden=tanh", "model.hidden_width=200", "model.hidden_bias=true"),
        *("model.direct=true", "model.output_bias=true"),
    ),
    "gates in double precision": ("training.dtype=float64", "model.hidden_width=100"),
    "the reference gradients": ("training.gradients=autograd", "model.hidden=gelu"),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_weights_and_losses_do_not_depend_on_the_number_of_threads(
    pipeline, tmp_path: Path, model: tuple[str, ...]
):
    shutil.copytree(pipeline.folder, tmp_path / "copy", symlinks=True)
    project = type(pipeline)(tmp_path / "copy")
    made = []
    for threads in (1, 2):
        done = project.stage(
            "train",
            "training.determinism=true",
            f"training.threads={threads}",
            *LARGE_STEPS,
            *model,
        )
        assert done.returncode == 0, done.stderr
        folder = project.folder / "artifacts"
        made.append(
            [
                (folder / name).read_bytes()
                for name in ("model/model.safetensors", "training/batches.csv")
            ]
        )
    assert made[0] == made[1]
