"""Loaded by Hydra, also inside DVC: makes the typed schema known before anything is composed."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "src") not in sys.path:
    sys.path.insert(0, str(ROOT / "src"))

from neural_ngram.pipeline.configuration import register  # noqa: E402

register(ROOT)
