"""End to end, from Kinesis to committed: rows per second from a backlog, freshness at a steady load, requests to S3.

The local Kinesis and the producer run on the same cores as Spark.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from lakestream_api import Progress
from lakestream_bench._counting_s3 import counting_s3
from lakestream_bench._ingestion import SHARDS, STREAM, WRITERS, Orders, Trigger, freshness, ingest, now, require_hudi
from lakestream_bench._options import hudi_fields, out_file
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_bench._yardstick import machine_speed
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import local_kinesis

BATCH = 100_000
WARM_UP = 14
"""Batches that are not counted: as long the JVM takes half of a core to compile what they run."""
COUNTED = 10
"""As many as there are from one compaction to the next, so that there is one of them, whole, in what is measured."""

STEADY_RATE = 2_000
STEADY_SECONDS = 60.0
STEADY_INTERVAL = "1s"
STEADY_WARM_UP = 20.0
"""Seconds; the first batches also wait for Spark to start."""

S3_SECONDS = 0.015
"""That the S3 server takes longer for each request than it does by itself, as S3 has to be reached."""
S3_BATCH = 10_000
S3_WARM_UP = 4
"""Batches that are not counted: the first one makes the table."""


@dataclass(frozen=True)
class Contender:
    """A writer."""

    name: str
    kind: str
    """Of `WRITERS`."""
    hudi: Mapping[str, Any] | None = None
    """Fields of the document's `hudi` beside the bench's own."""

    @classmethod
    def of(cls, kind: str, hudi: Mapping[str, Any]) -> list[Contender]:
        """A kind of writer, and, if it is one of Hudi's and fields are given, beside it the same with them."""
        as_it_is = cls(kind, kind)
        return [as_it_is, cls(f"{kind} *", kind, hudi)] if hudi and "hudi" in WRITERS[kind] else [as_it_is]


@dataclass(frozen=True)
class Throughput:
    """A backlog worked off in batches near `BATCH` records."""

    records: int
    """Counted ones, without the first batches'."""
    batches: int
    seconds: float
    rows_per_second: float
    stage_seconds: dict[str, float]
    """Mean per batch; the fetch of one batch overlaps with the write of the one before."""


@dataclass(frozen=True)
class Steady:
    """A stream at its tip."""

    records_per_second: float
    """Acknowledged ones."""
    throttled: int
    """Records that were refused and sent again, because more than the shards take was due after a stutter."""
    batches: int
    batch_seconds: float
    """Work per batch, median."""
    freshness_p50_seconds: float
    """From arrival to committed: the median of the batches' own medians, weighted by their records."""
    freshness_p99_seconds: float
    """The 99th percentile of the batches' own p99, weighted by their records."""


def throughput(writer: Contender, folder: Path) -> Throughput:
    """Fill the stream, then read it with no other load."""
    with local_kinesis(limits=Limits.none()) as server:
        server.create_stream(STREAM, shards=SHARDS)
        server.clock.freeze()
        Orders(server).fill((WARM_UP + COUNTED) * BATCH)
        server.clock.resume()
        with ingest(server, folder, writer.kind, Trigger("1s", BATCH), until_caught_up=True, hudi=writer.hudi) as run:
            batches = run.finish()
    counted, before = batches[WARM_UP:], batches[WARM_UP - 1]
    seconds = (counted[-1].finished_at - before.finished_at).total_seconds()
    records = sum(batch.records for batch in counted)
    return Throughput(records, len(counted), seconds, records / seconds, _stages(counted))


def steady(writer: Contender, folder: Path) -> Steady:
    """Write at a steady rate, within Kinesis's limits, while the stream is read."""
    with local_kinesis() as server:
        server.create_stream(STREAM, shards=SHARDS)
        orders = Orders(server)
        with ingest(
            server, folder, writer.kind, Trigger(STEADY_INTERVAL), until_caught_up=False, hudi=writer.hudi
        ) as run:
            orders.put(SHARDS)
            run.wait_for(1)
            for _ in orders.stream(STEADY_RATE, STEADY_WARM_UP):
                pass
            warm, began = len(run.batches()), time.monotonic()
            acknowledged, throttled = orders.acknowledged, orders.throttled
            for _ in orders.stream(STEADY_RATE, STEADY_SECONDS):
                pass
            seconds = time.monotonic() - began
            batches = run.batches()[warm:]
    return Steady(
        records_per_second=(orders.acknowledged - acknowledged) / seconds,
        throttled=orders.throttled - throttled,
        batches=len(batches),
        batch_seconds=sorted(batch.seconds.total for batch in batches)[len(batches) // 2],
        freshness_p50_seconds=freshness(batches, "p50_seconds", 0.5),
        freshness_p99_seconds=freshness(batches, "p99_seconds", 0.99),
    )


@dataclass(frozen=True)
class OnS3:
    """A backlog worked off in batches near `S3_BATCH` records, into a lake on S3."""

    batches: int
    """Counted ones: from one compaction to the next."""
    batch_seconds: float
    """Work per batch, median."""
    requests: Mapping[str, float]
    """Per batch, by kind; those of table services among them."""


def on_s3(writer: Contender, folder: Path) -> OnS3:
    """As `throughput`, but into S3."""
    wanted = S3_WARM_UP + COUNTED
    with local_kinesis(limits=Limits.none()) as server, counting_s3(S3_SECONDS) as s3:
        server.create_stream(STREAM, shards=SHARDS)
        server.clock.freeze()
        Orders(server).fill((wanted + 1) * S3_BATCH)
        server.clock.resume()
        with ingest(
            server, folder, writer.kind, Trigger("1s", S3_BATCH), until_caught_up=False, s3=s3, hudi=writer.hudi
        ) as run:
            run.wait_for(S3_WARM_UP)
            s3.counted.take()
            before = len(run.batches())
            run.wait_for(wanted)
            counts, batches = s3.counted.take(), run.batches()[before:]
    seconds = sorted(batch.seconds.total for batch in batches)[len(batches) // 2]
    return OnS3(len(batches), seconds, {name: count / len(batches) for name, count in counts.items()})


def _stages(batches: Sequence[Progress]) -> dict[str, float]:
    names = ("plan", "fetch", "write", "commit")
    return {name: sum(getattr(batch.seconds, name) for batch in batches) / len(batches) for name in names}


Figures = TypeVar("Figures")
MEASUREMENTS = ("backlog", "steady", "s3")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=out_file, required=True, help="gets the figures as JSON")
    parser.add_argument("--writers", nargs="+", choices=list(WRITERS), default=list(WRITERS))
    parser.add_argument("--measure", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument(
        "--hudi",
        type=hudi_fields,
        default={},
        metavar="YAML",
        help="fields of the document's hudi, as a mapping: writers of Hudi tables are measured without and with them",
    )
    options = parser.parse_args()
    require_hudi(parser, options.hudi, options.writers)
    return options


def main() -> int:
    """Print a table of each measurement, write the figures."""
    options = _options()
    writers = [writer for kind in options.writers for writer in Contender.of(kind, options.hudi)]
    telling = Telling(len(options.measure) * len(writers))
    speeds = []
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as scratch:

        def of_each(name: str, measure: Callable[[Contender, Path], Figures]) -> dict[str, Figures]:
            figures = {}
            for writer in writers if name in options.measure else []:
                speeds.append(machine_speed())
                with telling.measuring(f"{writer.name}, {name}"):
                    figures[writer.name] = measure(writer, Path(scratch) / f"{name}-{len(speeds)}")
            return figures

        backlog, tip, s3 = of_each("backlog", throughput), of_each("steady", steady), of_each("s3", on_s3)
    speeds.append(machine_speed())
    print(f"The machine parsed {min(speeds):,.0f} to {max(speeds):,.0f} MB/s of JSON between the measurements.")
    if options.hudi:
        print(f"Those with a star have hudi: {json.dumps(options.hudi)}")
    _show_backlog(backlog)
    _show_steady(tip)
    _show_s3(s3)
    figures = {
        "measured_at": now(),
        "cores": os.cpu_count(),
        "machine_speed_mb_per_second": speeds,
        "hudi": options.hudi,
        "backlog": {name: asdict(row) for name, row in backlog.items()},
        "steady": {name: asdict(row) for name, row in tip.items()},
        "s3": {name: asdict(row) for name, row in s3.items()},
    }
    options.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def _show_backlog(rows: Mapping[str, Throughput]) -> None:
    if not rows:
        return
    print(f"\nbacklog in batches of {BATCH:,} records, {os.cpu_count()} cores")
    print(f"{'writer':8}{'rows/s':>10}{'batches':>9}{'fetch s':>9}{'write s':>9}{'commit s':>9}")
    for name, row in rows.items():
        stages = row.stage_seconds
        print(
            f"{name:8}{row.rows_per_second:>10,.0f}{row.batches:>9}{stages['fetch']:>9.2f}"
            f"{stages['write']:>9.2f}{stages['commit']:>9.3f}"
        )


def _show_steady(rows: Mapping[str, Steady]) -> None:
    if not rows:
        return
    print(f"\nsteady {STEADY_RATE:,} records/s for {STEADY_SECONDS:.0f} s, a batch a second")
    print(
        f"{'writer':8}{'records/s':>10}{'throttled':>11}{'batches':>9}{'batch s':>9}{'fresh p50':>11}{'fresh p99':>11}"
    )
    for name, row in rows.items():
        print(
            f"{name:8}{row.records_per_second:>10,.0f}{row.throttled:>11,}"
            f"{row.batches:>9}{row.batch_seconds:>9.2f}"
            f"{row.freshness_p50_seconds:>10.2f}s{row.freshness_p99_seconds:>10.2f}s"
        )


def _show_s3(rows: Mapping[str, OnS3]) -> None:
    if not rows:
        return
    print(
        f"\nS3, {1000 * S3_SECONDS:.0f} ms more for each request: batches of {S3_BATCH:,} records, requests per batch"
    )
    print(f"{'writer':8}{'batches':>9}{'batch s':>9}{'requests':>10}")
    for name, row in rows.items():
        kinds = ", ".join(f"{count:.1f} {request}" for request, count in row.requests.items())
        print(f"{name:8}{row.batches:>9}{row.batch_seconds:>9.2f}{sum(row.requests.values()):>10.1f}  {kinds}")


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
