"""Each worked example of docs/howto/extend.md, from the added piece to a trained model."""

import json
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/howto/extend.md").read_text(encoding="utf-8")
SMALL = ("training.max_steps=30", "training.evaluate_every=15")


def example(heading: str) -> tuple[str, list[str]]:
    """The command that adds the piece, and the overrides of the experiment after it."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"^```bash\n(.*?)\n(dvc exp run .*?)^```", section, re.S | re.M)
    assert block
    return block[1], re.findall(r"-S (\S+)", block[2])


def test_a_tokenizer_kind_of_one_entry_is_learned_trained_with_and_sampled_from(project):
    added, overrides = example("A tokenizer kind")
    assert project.run("bash", "-euc", added).returncode == 0
    assert project.run("neural-ngram", "compose", *overrides, *SMALL).returncode == 0
    stages = ("split_corpus", "learn_bpe", "build_windows", "train", "generate")
    for done in map(project.stage, stages):
        assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((project.folder / "artifacts/tokenizer/report.json").read_text())
    assert report["kind"] == "wordpunct"
    samples = json.loads((project.folder / "artifacts/generation/samples.json").read_text())
    texts = [each["text"] for each in samples["continuations"]]
    assert all(texts)
    assert " " in "".join(texts)
    assert (project.folder / "artifacts/model/model.safetensors").exists()
