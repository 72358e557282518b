"""Run as a stage: tries to read the test partition in every way, and prints what came of each.

It is copied to a file named as the stage (train.py), for the frame takes the stage's name from
there. What is printed is JSON: of each attempt, what the boundary told, or "read".
"""

from neural_ngram.pipeline.frame import enter, sandbox

enter()

import ctypes
import json
import mmap
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors
from tokenizers import Tokenizer, models, trainers

SECRET = b"the secret of the test partition"
SPLITS = Path(os.environ["ATTEMPTED"]) / "data/splits"  # of this folder, or of the main checkout
TEST = SPLITS / "test.parquet"
TEXT = SPLITS / "test.txt"
ROOT = SPLITS.parents[1]
CODE = sysconfig.get_path("stdlib")


def by_ctypes() -> bytes:
    libc, buffer = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(100)
    handle = libc.open(os.fsencode(TEXT), os.O_RDONLY)
    if handle < 0:
        raise PermissionError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(TEXT))
    libc.read(handle, buffer, 100)
    return buffer.value


def by_mmap() -> bytes:
    with TEXT.open("rb") as handle, mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        return mapped[:]


def by_safetensors() -> bytes:
    with safetensors.safe_open(SPLITS / "test.safetensors", framework="numpy") as handle:
        return handle.get_tensor("text").tobytes()


def by_tokenizers() -> bytes:
    path = str(TEXT)
    tokenizer = Tokenizer(models.WordLevel(unk_token="?"))
    tokenizer.train([path], trainers.WordLevelTrainer(show_progress=False))
    return " ".join(sorted(tokenizer.get_vocab())).encode() + SECRET


def by_child(*command: str) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def by_thread() -> bytes:
    found: list[object] = []

    def read() -> None:
        try:
            found.append(pq.read_table(TEST).to_pandas()["text"][0].encode())
        except Exception as problem:
            found.append(problem)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def by_moving(move) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "moved.txt"
        move(TEXT, target)
        content = pa.OSFile(str(target)).read()
    TEXT.write_bytes(SECRET + b"\n")
    return content


def by_descriptor() -> bytes:
    folder = os.open(SPLITS, os.O_RDONLY | os.O_DIRECTORY)
    handle = os.open("test.txt", os.O_RDONLY, dir_fd=folder)
    return os.read(handle, 100)


def by_descriptor_of(folder: Path) -> bytes:
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    handle = os.open(TEXT.relative_to(folder), os.O_RDONLY, dir_fd=above)
    return os.read(handle, 100)


def by_moving_in(move) -> bytes:
    """By names that the system takes against open folders."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.open(ROOT, os.O_RDONLY), os.open(folder, os.O_RDONLY)
        move("data/splits/test.txt", "moved.txt", src_dir_fd=source, dst_dir_fd=target)
        content = pa.OSFile(f"{folder}/moved.txt").read()
    TEXT.write_bytes(SECRET + b"\n")
    return content


def by_moving_the_folder(name: str) -> bytes:
    """And back, so that other attempts find what they look for."""
    source, target = ROOT / name, ROOT / "moved"
    source.rename(target)
    try:
        return pa.OSFile(str(target / TEXT.relative_to(source))).read()
    finally:
        target.rename(source)


ATTEMPTS = {
    "what is open": lambda: pa.OSFile("params.yaml").read() + SECRET,
    "open": lambda: open(TEXT, "rb").read(),
    "os.open": lambda: os.read(os.open(TEXT, os.O_RDONLY), 100),
    "os.open in a folder": by_descriptor,
    "os.open in the project": lambda: by_descriptor_of(ROOT),
    "os.open in a folder above": lambda: by_descriptor_of(Path("/")),
    "around by installed code": lambda: open(CODE + "/.." * 30 + str(TEXT.resolve()), "rb").read(),
    "pathlib": lambda: TEXT.read_bytes(),
    "mmap": by_mmap,
    "numpy.memmap": lambda: np.memmap(TEXT, mode="r").tobytes(),
    "pandas": lambda: pd.read_parquet(TEST)["text"][0].encode(),
    "pandas csv": lambda: pd.read_csv(TEXT, header=None)[0][0].encode(),
    "pyarrow parquet": lambda: pq.read_table(TEST).to_pandas()["text"][0].encode(),
    "pyarrow memory map": lambda: pa.memory_map(str(TEXT)).read(),
    "safetensors": by_safetensors,
    "tokenizers": by_tokenizers,
    "ctypes": by_ctypes,
    "child": lambda: by_child("cat", str(TEXT)),
    "child python": lambda: by_child(sys.executable, "-c", f"print(open({str(TEXT)!r}).read())"),
    "thread": by_thread,
    "symlink": lambda: pa.OSFile(str(Path("linked.txt"))).read(),
    "symlink by open": lambda: Path("linked.txt").read_bytes(),
    "symlink in a declared folder": lambda: pa.OSFile("data/windows/train/linked.txt").read(),
    "proc": lambda: pa.OSFile(f"/proc/self/root{TEXT.resolve()}").read(),
    "hard link": lambda: by_moving(os.link),
    "rename": lambda: by_moving(os.rename),
    "hard link in a folder": lambda: by_moving_in(os.link),
    "rename in a folder": lambda: by_moving_in(os.rename),
    "rename of the folder": lambda: by_moving_the_folder("data/splits"),
    "rename of the folder above": lambda: by_moving_the_folder("data"),
    "cache": lambda: pa.OSFile(str(ROOT / ".dvc/cache/files/md5/ab/cdef")).read(),
    "cache by open": lambda: (ROOT / ".dvc/cache/files/md5/ab/cdef").read_bytes(),
    "corpus": lambda: pa.OSFile(str(ROOT / "data/corpus/corpus.txt")).read(),
    "git": lambda: by_child("git", "-C", str(ROOT), "show", "HEAD:data/corpus/corpus.txt"),
    "other experiment": lambda: pa.OSFile(str(ROOT / ".dvc/tmp/exps/other/test.txt")).read(),
}


def attempted(name: str) -> str:
    try:
        content = ATTEMPTS[name]()
    except Exception as problem:
        return sandbox().explanation(problem) or f"{type(problem).__name__}: {problem}"
    return "read" if SECRET in content else f"found {content!r}"


print(json.dumps({"kind": sandbox().kind} | {name: attempted(name) for name in ATTEMPTS}))
