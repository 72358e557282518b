"""Everything that is claimed about speed, in one run: `make bench`.

Prints a line for each comparison and writes docs/speed.csv, docs/growth.csv, docs/growth.png, the
table in docs/results.md, and an MLflow run. NEURAL_NGRAM_DATA may name a folder with the names
corpus. Takes about 5 minutes on a machine with two cores.
"""

import os
from dataclasses import asdict
from pathlib import Path

import commands
import growth
import pandas as pd
import sandbox
import text
import torch
import training
from measure import Row, cpu_name

from neural_ngram.artifacts import write_bytes, write_csv, write_text
from neural_ngram.export.charts import png
from neural_ngram.export.results import SPEED, render_speed
from neural_ngram.tracking.run import start_run

DOCS = Path("docs")


def main() -> None:
    machine = f"{cpu_name()}, {os.cpu_count()} cores, torch {torch.__version__}"
    print(f"{machine}\n{'':44} {'ours':>14} {'peer':>14}", flush=True)
    rows = []
    for module in (training, text, sandbox, commands):
        for row in module.rows():
            print(row, flush=True)
            rows.append(row)
    points = list(growth.points())
    for point in points:
        print(f"{point.measured}: {point.varied} {point.value:>10,} {point.ms:11.3f} ms")
    table = pd.DataFrame(map(asdict, rows)).assign(machine=machine)
    write_csv(DOCS / "speed.csv", table.round({"ours_ms": 4, "peer_ms": 4, "ratio": 2}))
    write_csv(DOCS / "growth.csv", pd.DataFrame(points).round({"ms": 3}))
    write_bytes(DOCS / "growth.png", png(growth.picture(points)))
    renew_table()
    log(rows, machine)


def renew_table() -> None:
    """Put the table in the place of the one that the page ends with."""
    page, csv = DOCS / "results.md", DOCS / "speed.csv"
    head = page.read_text(encoding="utf-8").partition(SPEED)[0].rstrip("\n")
    write_text(page, f"{head}\n\n{render_speed(csv.read_text(encoding='utf-8'))}")


def log(rows: list[Row], machine: str) -> None:
    with start_run("benchmarks", {"machine": machine}) as run:
        for row in rows:
            name = "".join(c if c.isalnum() else "_" for c in row.task)
            run.metrics({f"{name}.ours_ms": row.ours_ms, f"{name}.ratio": row.ratio})
        for name in ("speed.csv", "growth.csv", "growth.png"):
            run.artifact(DOCS / name, "benchmarks")


if __name__ == "__main__":
    main()
