"""What the tests share: where the real corpora lie, and how hypothesis searches."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from patience import PATIENCE, wait_for

from neural_ngram.export.mlflow_model import package
from neural_ngram.model import storage as model_storage
from neural_ngram.model.architecture import Architecture
from neural_ngram.model.network import restore
from neural_ngram.settings import ModelSettings, TokenizerSettings
from neural_ngram.tokens import tokenizer as tokenizers
from neural_ngram.tracking.run import find_run, start_run
from neural_ngram.tracking.spool import MODEL_TAG

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("NEURAL_NGRAM_DATA")
    if not folder:
        pytest.skip("NEURAL_NGRAM_DATA is not set; let it name the folder of the real corpora")
    return Path(folder)


@pytest.fixture(scope="session")
def real_data(data_folder: Path) -> Callable[[str], Path]:
    def find(name: str) -> Path:
        path = data_folder / name
        if not path.exists():
            pytest.skip(f"NEURAL_NGRAM_DATA={data_folder} holds no {name}")
        return path

    return find


@pytest.fixture(scope="session")
def packaged_chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Markov chain over a, b and c as a model packaged for MLflow."""
    chain = np.array([[0.1, 0.7, 0.2], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]])
    made, packaged = (tmp_path_factory.mktemp(name) for name in ("made", "packaged"))
    tokenizer = tokenizers.learn(["abc"], TokenizerSettings(kind="character", markers="none"))
    origin = {"tokenizer_sha256": tokenizers.save(tokenizer, made)}
    architecture = Architecture(
        vocabulary_size=3,
        context_length=1,
        settings=ModelSettings(hidden="none", embedding_width=3),
    )
    weights = {"embedding": np.eye(3), "output": np.log(chain)}
    model_storage.save(restore(architecture, weights), made / "model.safetensors", origin)
    package(packaged, made / "model.safetensors", made)
    return packaged


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, packaged_chain: Path) -> Path:
    """The folder of a store with two trained models, the second registered last."""
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DVC_ROOT", str(folder))
        environment.delenv("MLFLOW_TRACKING_URI", raising=False)
        for rate, name in enumerate(("embedded swiglu C4 D32 H64", "embedded linear C4 D32"), 1):
            with start_run(name, {"optimizer.learning_rate": rate}, name) as run:
                run.tags({MODEL_TAG: name})
                for step in range(20):
                    run.metric("validation.loss_nats", 6 - rate * step / 20, step)
            with find_run(name, "unused", {}) as run:
                run.model(packaged_chain)
    return folder / "runs"


@contextmanager
def _served(
    command: str, health: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", *command.split(), "--host", "127.0.0.1", "--port", str(port)],
        cwd=folder,
        env=os.environ | environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert process.poll() is None, "the server ended"
        with suppress(OSError):
            urllib.request.urlopen(address + health, timeout=PATIENCE).close()
            return True
        return False

    wait_for(answers, "an answer of the server")
    yield address
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=PATIENCE)


@pytest.fixture(scope="session")
def served() -> Callable[..., AbstractContextManager[str]]:
    """Run `python -m command` as a server, once its health page answers; its address."""
    return _served


torch.set_num_threads(1)
