"""Weights are loaded only when they are those whose hash is on record."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from neural_ngram.cli.main import main
from neural_ngram.cli.playground.play import _loaded
from neural_ngram.errors import ArtifactError
from neural_ngram.export.mlflow_model import package
from neural_ngram.export.serving import _load_pyfunc
from neural_ngram.model import storage as model_storage
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import initialise
from neural_ngram.model.storage import hash_file
from neural_ngram.randomness import SplitMix64
from neural_ngram.settings import ModelSettings, TokenizerSettings
from neural_ngram.tokens import tokenizer as tokenizers

ARCHITECTURE = Architecture(vocabulary_size=7, context_length=2, settings=ModelSettings())


ROOT = Path(__file__).parents[1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made/model.safetensors"
    model_storage.save(initialise(ARCHITECTURE, SplitMix64(1), torch.float32), path, {})
    return path


def flipped(path: Path) -> None:
    """Change one bit of the last weight: still a model, but another one."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_the_record_is_one_that_other_programs_check(file: Path):
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert hash_file(file).read_text() == f"{digest}  model.safetensors\n"
    command = ("sha256sum", "--check", hash_file(file).name)
    if shutil.which("sha256sum"):
        assert subprocess.run(command, cwd=file.parent, check=False).returncode == 0


def test_a_copied_folder_loads_and_a_flipped_bit_does_not(file: Path, tmp_path: Path):
    copy = shutil.copytree(file.parent, tmp_path / "copy") / file.name
    model_storage.load(copy)
    flipped(copy)
    with pytest.raises(ArtifactError, match="is not the recorded model: its SHA-256 is") as caught:
        model_storage.load(copy)
    assert hashlib.sha256(copy.read_bytes()).hexdigest() in str(caught.value)
    assert hashlib.sha256(file.read_bytes()).hexdigest() in str(caught.value)


def test_a_hash_on_record_elsewhere_takes_the_place_of_the_file(file: Path):
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    hash_file(file).unlink()
    model_storage.load(file, digest)
    flipped(file)
    with pytest.raises(ArtifactError, match="is not the recorded model"):
        model_storage.load(file, digest)


@pytest.mark.parametrize("record", [None, b"", b"\xff", b"0000  model.safetensors\n"])
def test_without_a_whole_record_nothing_is_loaded(file: Path, record: bytes | None):
    if record is None:
        hash_file(file).unlink()
    else:
        hash_file(file).write_bytes(record)
    with pytest.raises(ArtifactError, match=r"model\.safetensors"):
        model_storage.load(file)


def test_the_same_model_leaves_the_same_record(file: Path):
    before = hash_file(file).read_bytes()
    model_storage.save(initialise(ARCHITECTURE, SplitMix64(1), torch.float32), file, {})
    assert hash_file(file).read_bytes() == before


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with artifacts/model and artifacts/tokenizer that belong together."""
    monkeypatch.chdir(tmp_path)
    tokenizer = tokenizers.learn(["abcdefg"], TokenizerSettings(kind="character", markers="none"))
    origin = {
        "tokenizer_sha256": tokenizers.save(tokenizer, Path("artifacts/tokenizer")),
        "documents_sha256": "0" * 64,
    }
    model = initialise(ARCHITECTURE, SplitMix64(1), torch.float32)
    model_storage.save(model, Path("artifacts/model/model.safetensors"), origin)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("next", "ab"),
        ("neighbours", "a"),
        ("parameters",),
        ("embedding", "made/embedding.png"),
        ("export", "onnx", "made"),
        ("export", "tokenizer", "made"),
        ("export", "word2vec", "made"),
    ],
    ids=" ".join,
)
def test_commands_refuse_weights_that_are_not_recorded(
    project: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
):
    for name in ("dvc.yaml", "conf", ".dvc"):
        Path(name).symlink_to(ROOT / name)
    assert main(list(command)) == 0
    shutil.rmtree("made", ignore_errors=True)
    flipped(Path("artifacts/model/model.safetensors"))
    assert main(list(command)) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert "artifacts/model/model.safetensors is not the recorded model" in told
    assert not Path("made").exists()


def test_a_packaged_model_carries_its_record(project: Path):
    Path("packaged").mkdir()
    package(
        Path("packaged"), Path("artifacts/model/model.safetensors"), Path("artifacts/tokenizer")
    )
    _load_pyfunc("packaged/model")
    flipped(Path("packaged/model/model.safetensors"))
    with pytest.raises(ArtifactError, match="is not the recorded model"):
        _load_pyfunc("packaged/model")


def test_a_model_from_mlflow_is_verified_by_the_hash_of_its_run(project: Path):
    file = Path("artifacts/model/model.safetensors")

    class Past:
        """A run that logged the weights alone, as older versions did."""

        model_sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        run_id = "1"

        def download(self, folder: str, target: Path) -> Path:
            return shutil.copytree(Path("artifacts") / folder, target / folder)

    hash_file(file).unlink()
    _loaded(Past())
    flipped(file)
    with pytest.raises(ArtifactError, match="is not the recorded model"):
        _loaded(Past())
