"""What the money model takes of an arm, from its trials. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from lakestream_bench.batch_times import fit_line
from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.method import SPARK
from lakestream_bench.compare.money import Measured
from lakestream_bench.compare.queries import ALWAYS, Kind
from lakestream_bench.compare.results import Requests, Trial

PAID_AS_WRITES = ("PUT", "POST", "LIST")
"""S3 requests at the price of a PUT; DELETE is free, a bulk delete is a POST."""
PAID_AS_READS = ("GET", "HEAD")


def measured(name: str, trials: Sequence[Trial], requests: Requests | None) -> Measured:
    """What the money model takes of an arm.

    A line through the batches tells what a batch costs and what an event does: compactions are with batches of the
    middle size (`Scenario.sizes`), so they lift the line and do not tilt it. A line through the looks, for each kind
    of query that every table is asked at every look, what one costs (of Spark) and what each row of the table adds: a
    mean over other kinds at other looks would take dear kinds for many rows. Where a line says less than nothing, the
    mean of all goes to the other term. Without counted requests they cost nothing, and the report says so. Nobody
    merges JSON's files, so that a query opens those of each batch that is kept; a table's grow with its rows at most.
    """
    keeps_all = not ARMS[name].has_keys
    per_batch, per_event = _line([(batch.records, batch.cpu) for trial in trials for batch in trial.batches])
    per_query, per_row = zip(*(_query_line(kind, trials, keeps_all=keeps_all) for kind in ALWAYS), strict=True)
    ends = [trial.looks[-1] for trial in trials]
    writing = requests.writing if requests else {}
    count = requests.batches if requests else 1
    reading = [counts for kind, counts in requests.reading.items() if kind in ALWAYS] if requests else []
    listed = statistics.fmean(_paid(one, PAID_AS_WRITES) for one in reading) if reading else 0.0
    opened = statistics.fmean(_paid(one, PAID_AS_READS) for one in reading) if reading else 0.0
    # The first batch was not counted, and is asked for.
    of_each = 1 / (count + 1) if keeps_all else 0.0
    return Measured(
        arm=name,
        cpu_per_event=per_event,
        cpu_per_batch=per_batch,
        bytes_per_row=statistics.median(
            look.bytes_at_rest / (look.events if keeps_all else look.rows) for look in ends
        ),
        keeps_all_events=keeps_all,
        query_cpu=statistics.fmean(per_query),
        query_cpu_per_row=statistics.fmean(per_row),
        writes_per_batch=_paid(writing, PAID_AS_WRITES) / count,
        reads_per_batch=_paid(writing, PAID_AS_READS) / count,
        writes_per_query=0.0 if keeps_all else listed,
        reads_per_query=0.0 if keeps_all else opened,
        writes_per_query_and_batch=listed * of_each,
        reads_per_query_and_batch=opened * of_each,
    )


def _query_line(kind: Kind, trials: Sequence[Trial], *, keeps_all: bool) -> tuple[float, float]:
    """CPU-seconds of a kind of query, and of each row of the table in it."""
    return _line(
        [
            (float(look.events if keeps_all else look.rows), one.cpu)
            for trial in trials
            for look in trial.looks
            for one in look.asked
            if (one.kind, one.engine) == (kind, SPARK)
        ]
    )


def _paid(counts: Mapping[str, int], kinds: Sequence[str]) -> int:
    return sum(counts.get(kind, 0) for kind in kinds)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Fixed and per unit, neither below zero; all of it fixed if sizes do not differ, or it does not differ by them."""
    if len({x for x, _ in points}) < 2 or len({y for _, y in points}) < 2:
        return statistics.fmean(y for _, y in points), 0.0
    line = fit_line(points)
    if line.per_record < 0:
        return statistics.fmean(y for _, y in points), 0.0
    if line.fixed < 0:
        return 0.0, sum(y for _, y in points) / sum(x for x, _ in points)
    return line.fixed, line.per_record
