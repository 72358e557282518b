"""How fast the count side is, beside its peers in the same run: `python benchmarks/ngram.py`.

Entropies of order 0 to 5 beside `collections.Counter`; the same over 10 million tokens, at once
and in partitions from a memory-mapped file, each in a process of its own for its peak memory; and a
Kneser-Ney model of order 5 of the Brown corpus (NEURAL_NGRAM_DATA names its folder) or, without it,
of synthetic text of its size, beside NLTK's where that is installed and one of plain dictionaries.

Takes about five minutes. Ratios are of medians.
"""

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
from measure import cpu_name
from numpy.typing import NDArray

from neural_ngram.ngram.entropy import conditional_entropies
from neural_ngram.ngram.kneser_ney import KneserNey
from neural_ngram.tokens.windows import Windows, build_stream

try:
    from nltk.lm import KneserNeyInterpolated
    from nltk.util import everygrams
except ImportError:
    KneserNeyInterpolated = everygrams = None

CONTEXT = 5
ORDER = 5
REPEATS = 3


def main() -> None:
    if len(sys.argv) == 3:
        return measure_memory(Path(sys.argv[1]), int(sys.argv[2]))
    print(f"{cpu_name()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"NumPy {np.__version__}\n")
    compare_entropies()
    count_ten_million()
    return compare_kneser_ney()


def zipf_tokens(count: int, types: int) -> NDArray[np.uint16]:
    """Tokens whose frequencies fall as those of words do."""
    shares = 1 / np.arange(1, types + 1)
    return np.random.default_rng(0).choice(types, count, p=shares / shares.sum()).astype(np.uint16)


def windows_over(tokens: NDArray[np.uint16]) -> Windows:
    return Windows(tokens=tokens, offsets=np.array([0, len(tokens)]), context_length=CONTEXT)


def seconds(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def entropies_by_counter(windows: Windows) -> list[float]:
    """The peer: dictionaries of tuples."""
    tokens, N = windows.tokens.tolist(), len(windows)
    entropies = []
    for k in range(CONTEXT + 1):
        columns = [tokens[CONTEXT - lag : len(tokens) - lag] for lag in range(k, -1, -1)]
        pairs = Counter(zip(*columns, strict=True))
        contexts: Counter[tuple[int, ...]] = Counter()
        for pair, count in pairs.items():
            contexts[pair[:-1]] += count
        joint = sum(n * log(n) for n in pairs.values())
        entropies.append((sum(n * log(n) for n in contexts.values()) - joint) / N)
    return entropies


def compare_entropies() -> None:
    print(f"Entropies of order 0 to {CONTEXT}, seconds")
    print(f"{'tokens':>12} {'ours':>8} {'Counter':>8} {'ratio':>7}")
    for count in (100_000, 300_000, 1_000_000):
        windows = windows_over(zipf_tokens(count, 10_000))
        found = [entropy.entropy_nats for entropy in conditional_entropies(windows)]
        np.testing.assert_allclose(found, entropies_by_counter(windows), atol=1e-9)
        ours = seconds(partial(conditional_entropies, windows))
        theirs = seconds(partial(entropies_by_counter, windows))
        print(f"{count:12,} {ours:8.3f} {theirs:8.3f} {theirs / ours:6.1f}x")


def count_ten_million() -> None:
    print(f"\nEntropies of order 0 to {CONTEXT} over 10,000,000 memory-mapped tokens")
    print(f"{'windows held':>12} {'seconds':>8} {'peak RSS':>11} {'of that, at start':>18}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokens.npy")
        np.save(path, zipf_tokens(10_000_000, 10_000))
        for held in (1 << 24, 1 << 22, 1 << 20):
            subprocess.run([sys.executable, __file__, str(path), str(held)], check=True)


def measure_memory(path: Path, held: int) -> None:
    windows = windows_over(np.load(path, mmap_mode="r"))
    before = peak_megabytes()
    taken = seconds(partial(conditional_entropies, windows, windows_in_memory=held), repeats=1)
    print(f"{held:12,} {taken:8.1f} {peak_megabytes():8.0f} MB {before:15.0f} MB")


def peak_megabytes() -> float:
    """The peak of this process alone: on Linux, `getrusage` also remembers its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def training_and_validation() -> tuple[str, list[NDArray[np.int64]]]:
    if "NEURAL_NGRAM_DATA" not in os.environ:
        tokens = zipf_tokens(1_161_192, 16_000).astype(np.int64)
        return "synthetic text", [tokens[:-200_000], tokens[-200_000:]]
    path = Path(os.environ["NEURAL_NGRAM_DATA"], "brown", "brown.jsonl")
    texts = pd.read_json(path, lines=True)["text"]
    tokens = pd.factorize(np.array(" ".join(texts).split()))[0]
    return "Brown", [tokens[:-200_000], tokens[-200_000:]]


def compare_kneser_ney() -> None:
    name, parts = training_and_validation()
    V = int(max(part.max() for part in parts)) + 2
    train, validation = (padded(V, part + 1) for part in parts)
    print(f"\nKneser-Ney of order {ORDER} over {len(train) + len(validation):,} tokens ({name})")
    print(f"{'':20} {'fit':>8} {'score':>8} {'nats':>8}   seconds; nats per token")
    model = KneserNey.fit(train, vocabulary_size=V, order=ORDER)
    fit = seconds(partial(KneserNey.fit, train, vocabulary_size=V, order=ORDER))
    score = seconds(partial(model.log_probabilities, validation))
    loss = -model.log_probabilities(validation).mean()
    print(f"{'ours, modified':20} {fit:8.2f} {score:8.2f} {loss:8.4f}")
    print_dictionaries(train, validation, V)
    print_nltk(train, validation)


def padded(vocabulary_size: int, *documents: NDArray[np.int64], order: int = ORDER) -> Windows:
    stream, offsets = build_stream(
        documents, context_length=order - 1, vocabulary_size=vocabulary_size, pad=0
    )
    return Windows(tokens=stream, offsets=offsets, context_length=order - 1, bos=0)


def print_dictionaries(train: Windows, validation: Windows, V: int) -> None:
    """The peer in plain Python: one discount of ¾ an order, everything else as in the model."""
    start = time.perf_counter()
    followers = count_with_dictionaries(train)
    fitted = time.perf_counter()
    nats = score_with_dictionaries(followers, validation, V)
    scored = time.perf_counter()
    print(f"{'dictionaries, D = ¾':20} {fitted - start:8.2f} {scored - fitted:8.2f} {nats:8.4f}")


Followers = dict[tuple[int, ...], Counter[int]]


def count_with_dictionaries(windows: Windows) -> Followers:
    tokens = windows.tokens.tolist()
    seen = set()
    followers: Followers = defaultdict(Counter)
    for end in range(ORDER, len(tokens) + 1):
        gram = tuple(tokens[end - ORDER : end])
        followers[gram[:-1]][gram[-1]] += 1
        while len(gram) > 1 and gram not in seen:
            seen.add(gram)
            gram = gram[1:]
            followers[gram[:-1]][gram[-1]] += 1
    return followers


def score_with_dictionaries(followers: Followers, windows: Windows, V: int) -> float:
    totals = {context: sum(after.values()) for context, after in followers.items()}
    tokens = windows.tokens.tolist()
    nats = 0.0
    for end in range(ORDER, len(tokens) + 1):
        gram, p = tuple(tokens[end - ORDER : end]), 1 / (V - 1)
        for size in range(1, ORDER + 1):
            context = gram[ORDER - size : -1]
            after = followers.get(context)
            if after is None:
                break
            kept = max(after.get(gram[-1], 0) - 0.75, 0)
            p = (kept + 0.75 * len(after) * p) / totals[context]
        nats -= log(p)
    return nats / (len(tokens) - ORDER + 1)


def print_nltk(train: Windows, validation: Windows) -> None:
    """NLTK's model has one discount, too; it is fitted whole, and its scoring is extrapolated."""
    if KneserNeyInterpolated is None:
        print("NLTK is not installed: pip install nltk")
        return
    start = time.perf_counter()
    text = [str(token) for token in train.tokens.tolist()]
    model = KneserNeyInterpolated(ORDER, discount=0.75)
    model.fit([everygrams(text, max_len=ORDER)], vocabulary_text=sorted(set(text)))
    fitted = time.perf_counter()
    some = [str(token) for token in validation.tokens[: 10 + ORDER].tolist()]
    for end in range(ORDER, len(some)):
        model.score(some[end], some[end - ORDER + 1 : end])
    each = (time.perf_counter() - fitted) / 10
    print(
        f"{'NLTK, D = ¾':20} {fitted - start:8.2f} {each * len(validation):8.0f}   (from 10 tokens)"
    )


if __name__ == "__main__":
    main()
