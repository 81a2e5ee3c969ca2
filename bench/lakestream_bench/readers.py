"""The same questions of the same tables, asked of each engine in one run.

    python -m lakestream_bench.readers [--batches 21] [--rows 2000] [--tables json mor] [--out readers.json]

The engines are those of `lakestream query`: Spark with Hudi, in a stock session; hudi-rs, whose
rows DuckDB asks; DuckDB on files of JSON lines. Tables are written, and asked, as `lakestream compare` does it, which
tells what a table costs to write as well; this tells who reads it, and how fast, in minutes.

Each answer that is timed is held against what was sent. *First* is from naming the table to the answer with its
files out of the page cache; *again* is the median of the repetitions. The start of a process, 10 s of Spark's, is in
neither.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from lakestream_bench._figures import write_figures
from lakestream_bench._options import out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench.compare.arms import ARMS, COW, JSON, MOR, VERSION_9
from lakestream_bench.compare.method import ENGINES
from lakestream_bench.compare.results import Trial
from lakestream_bench.compare.run import Comparison, run
from lakestream_bench.compare.scenarios import SCENARIOS

_SCENARIO = SCENARIOS["half-updates"]
_TABLES = (JSON.name, MOR.name, VERSION_9.name, COW.name)


@dataclass(frozen=True)
class Reading:
    """One question to one table, by one engine, at the last look; seconds."""

    table: str
    question: str
    engine: str
    first: float
    again: float
    cpu: float
    """CPU seconds of one of the repetitions."""
    rows: int
    """In the table's state."""
    events: int
    """That it was made of."""


class NoReadingError(Exception):
    """A table was not written, or an engine gave a wrong answer."""


def readings(trials: Iterable[Trial]) -> list[Reading]:
    """What the last look at each table found; of several repetitions the median. Pure.

    Raises:
        NoReadingError: a trial failed; the message says why.
    """
    found: list[Reading] = []
    for trial in trials:
        if trial.failure is not None:
            raise NoReadingError(f"{ARMS[trial.arm].title}: {trial.failure}")
        look = trial.looks[-1]
        found += [
            Reading(trial.arm, one.kind, one.engine, one.cold, one.warm, one.cpu, look.rows, look.events)
            for one in look.asked
        ]
    order = sorted(found, key=lambda one: (_TABLES.index(one.table), one.question, one.engine))
    groups = (list(same) for _, same in groupby(order, key=lambda one: (one.table, one.question, one.engine)))
    return [
        replace(
            same[0],
            first=statistics.median(one.first for one in same),
            again=statistics.median(one.again for one in same),
            cpu=statistics.median(one.cpu for one in same),
        )
        for same in groups
    ]


def show(found: Sequence[Reading]) -> None:
    """A line for each question to each table, the engines side by side."""
    width = 11
    engines = {engine: title.partition(",")[0].partition(" (")[0] for engine, title in ENGINES.items()}
    print(" " * 58 + "".join(f"{title:>{2 * width}}" for title in engines.values()))
    times = f"{'first s':>{width}}{'again s':>{width}}"
    print(f"{'table':32} {'question':25} {times * len(engines)}")
    for (table, question), same in groupby(found, key=lambda one: (one.table, one.question)):
        by = {one.engine: one for one in same}
        cells = (
            f"{by[engine].first:{width}.2f}{by[engine].again:{width}.2f}" if engine in by else " " * 2 * width
            for engine in engines
        )
        print(f"{ARMS[table].title:32} {question:25} {''.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=whole(2), default=_SCENARIO.batches)
    parser.add_argument("--rows", type=whole(), default=_SCENARIO.rows, help="events of a batch, in the mean")
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=list(_TABLES))
    parser.add_argument("--repetitions", type=whole(), default=1, help="of all, written anew")
    parser.add_argument("--again", type=whole(), default=3, help="times that each question is asked once more")
    parser.add_argument("--out", type=out_file, default=None)
    options = parser.parse_args()
    scenario = replace(_SCENARIO, batches=options.batches, rows=options.rows)
    comparison = Comparison((scenario,), tuple(options.tables), options.repetitions, options.again, requests=False)
    beside = options.out.parent if options.out else None
    with tempfile.TemporaryDirectory(prefix="lakestream-readers-", dir=beside) as folder:
        results = run(comparison, Path(folder) / "trials")
    try:
        found = readings(results.trials)
    except NoReadingError as error:
        sys.exit(f"lakestream_bench.readers: {error}")
    show(found)
    if options.out:
        write_figures(options.out, "readers", found)


if __name__ == "__main__":
    with no_process_left():
        main()
