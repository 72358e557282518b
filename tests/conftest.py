"""What the tests share: where the real corpora lie, and how hypothesis searches."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


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


torch.set_num_threads(1)
