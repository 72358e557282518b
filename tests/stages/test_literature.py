"""The presets of published runs, stage by stage, beside what was published."""

import json
import re
from collections.abc import Iterator

import pytest

NAMES = ("embedding", "gate", "up", "down", "output")
TRAINING = ("split_corpus", "learn_bpe", "build_windows", "train")


def read(project, name: str) -> dict:
    return json.loads((project.folder / "artifacts" / name).read_text())


@pytest.fixture(scope="module")
def chapter_23(run_preset, real_data):
    corpus = f"corpus.path={real_data('bilingual/corpus.json')}"
    return run_preset("ch23", corpus, stages=(*TRAINING, "generate"))


@pytest.fixture(scope="module")
def published(real_data) -> dict[str, str]:
    lines = real_data("bilingual/ch23_expected.txt").read_text().splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines)


def numbers(text: str) -> Iterator[float]:
    return (float(number) for number in re.findall(r"-?\d+\.\d+", text))


def six(values) -> list[float]:
    return [round(value, 6) + 0.0 for value in values]


def test_chapter_23_sizes(chapter_23, published):
    evidence = read(chapter_23, "training/evidence.json")
    shapes = evidence["parameters"]["shapes"]
    assert [shapes[name] for name in NAMES] == [[266, 4], [8, 8], [8, 8], [8, 8], [8, 266]]
    assert f"parameters:{evidence['parameters']['count']} " in published["config"]
    for name, windows in evidence["windows"].items():
        assert f"{name}_contexts:{windows} " in published["split"]


def test_chapter_23_probe(chapter_23, published):
    probe = read(chapter_23, "training/evidence.json")["probe"]
    assert str(probe["context"]) == published["probe_context"]
    embeddings = [value for row in probe["embeddings"] for value in row]
    assert six(embeddings) == list(numbers(published["probe_embeddings"]))
    assert six(probe["hidden"]) == list(numbers(published["probe_hidden"]))
    *logits, best = numbers(published["probe_logits"])
    assert six(probe["logits"]) == logits
    assert six([probe["argmax_logit"]]) == [best]
    assert f"argmax:{probe['argmax']} " in published["probe_logits"]


def test_chapter_23_gradients_and_losses(chapter_23, published):
    evidence = read(chapter_23, "training/evidence.json")
    norms = six(evidence["first_gradient_l1"][name] for name in NAMES)
    assert norms == list(numbers(published["first_gradient_l1"]))
    for step, losses in evidence["losses_nats"].items():
        expected = list(numbers(published[f"checkpoint[{step}]"]))
        assert six([losses["train"], losses["validation"]]) == expected
    improvement = [evidence["validation_improvement_nats"]]
    assert six(improvement) == list(numbers(published["validation_improvement"]))


def test_chapter_23_continuation(chapter_23, published):
    samples = read(chapter_23, "generation/samples.json")
    greedy = samples["continuations"][0]
    assert published["generation"] == (
        f"prompt:{samples['prompt']} prompt_ids:{samples['prompt_ids']} ids:{greedy['ids']} "
        f"stop:{greedy['stop']} bytes_hex:{greedy['bytes_hex']}"
    )


def test_chapter_23_contrast(chapter_23, published):
    found = read(chapter_23, "training/evidence.json")["contrast"]
    assert published["historical"] == (
        f"bigram_followers:{found['last_token_followers']} "
        f"fixed_context_followers:{found['full_context_followers']} "
        f"neural_context_width:{found['learned_context_width']}"
    )


def test_chapter_23_repeats_every_bit_and_leaves_test_alone(chapter_23):
    evidence = read(chapter_23, "training/evidence.json")
    assert evidence["same_seed_replays_bitwise"] is True
    assert evidence["test_text_encoded_or_scored"] is False
    assert not (chapter_23.folder / "data/windows/test").exists()
    hashes = evidence["sha256"]
    assert sorted(hashes) == ["model", "tokenizer", "train_documents", "validation_documents"]
