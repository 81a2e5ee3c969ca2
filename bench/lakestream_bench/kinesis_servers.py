"""Records per second in and out of servers that speak the Kinesis API, with two consumers reading all the time.

    python -m lakestream_bench.kinesis_servers [--seconds 6] [--rounds 2] [--out kinesis_servers.json]

The contenders run in turn, each round in a fresh process: ours (rates off), ours with `--data`, moto, kinesalite and
kinesis-local. Two processes put 250-byte records, 500 to a PutRecords, into 4 shards as fast as they are answered; two
more read every shard from TRIM_HORIZON: at once while behind, five times a second at the tip. After the producers stop,
the consumers get time to reach the tip; what they then have is compared with what was acknowledged.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import Empty
from typing import Any

from lakestream_bench._kinesis_contenders import UnavailableError, running
from lakestream_bench._options import above_zero, out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._raw_kinesis import RawClient, put_requests, request
from lakestream_bench._telling import Telling

OURS = ("lakestream", "lakestream-data")
CONTENDERS = (*OURS, "moto", "kinesalite", "kinesis-local")
STREAM = "bench"
SHARDS = 4
RECORD_BYTES = 250
BATCH = 500
PRODUCERS = 2
CONSUMERS = 2
VARIANTS = 32
DRAIN_SECONDS = 15.0
TIP_PAUSE_SECONDS = 0.2
NEXT_ITERATOR = re.compile(rb'"NextShardIterator"\s*:\s*"([^"]*)"')
NPM_FOLDER = Path("build/bench/npm")


@dataclass(frozen=True)
class Run:
    """One contender, one round."""

    contender: str
    acknowledged: int
    in_per_second: float
    out_per_second: float
    """Of both consumers together, while the producers ran."""
    read_back: tuple[int, ...]
    """Records that each consumer had in the end."""

    @property
    def complete(self) -> bool:
        """Whether each consumer had exactly what was acknowledged."""
        return all(read == self.acknowledged for read in self.read_back)


@dataclass(frozen=True)
class Result:
    """A contender's median round."""

    contender: str
    in_per_second: float
    out_per_second: float
    in_rounds: tuple[float, ...]
    complete: bool
    """In every round."""


def produce(port: int, seed: int, go: Event, stop: Event, results: Any) -> None:
    """Put until told to stop; reports the records acknowledged."""
    requests = put_requests(STREAM, BATCH, RECORD_BYTES, VARIANTS, seed)
    client = RawClient(port)
    acknowledged = turn = 0
    results.put("ready")
    go.wait()
    while not stop.is_set():
        answer = client.send(requests[turn % VARIANTS])
        if answer.status == 200:
            acknowledged += answer.body.count(b'"ShardId"')
        turn += 1
    results.put(("acknowledged", acknowledged))


def consume(port: int, go: Event, stop: Event, drained_by: Any, results: Any) -> None:
    """Read all shards; reports the records read until `stop`, and those read until the tip or the deadline."""
    client = RawClient(port)
    shards = [shard["ShardId"] for shard in client.call("ListShards", StreamName=STREAM)["Shards"]]
    place = {"StreamName": STREAM, "ShardIteratorType": "TRIM_HORIZON"}
    iterators = {shard: client.call("GetShardIterator", ShardId=shard, **place)["ShardIterator"] for shard in shards}
    results.put("ready")
    go.wait()
    read = 0
    read_at_stop: int | None = None
    while True:
        stopped = stop.is_set()
        if stopped and read_at_stop is None:
            read_at_stop = read
        found = 0
        for shard in shards:
            answer = client.send(request("GetRecords", {"ShardIterator": iterators[shard], "Limit": 10_000}))
            if answer.status == 200:
                found += answer.body.count(b'"Data"')
                iterators[shard] = _next_iterator(answer.body)
        read += found
        if stopped and (found == 0 or time.monotonic() > drained_by.value):
            break
        if found == 0:
            time.sleep(TIP_PAUSE_SECONDS)
    results.put(("read", (read_at_stop, read)))


def _next_iterator(body: bytes) -> str:
    # To parse megabytes of records for the one field behind (or before) them would cost more than to read them.
    found = NEXT_ITERATOR.search(body, body.rindex(b'"NextShardIterator"'))
    assert found is not None
    return found.group(1).decode()


def measure(name: str, seconds: float) -> Run:
    """One round of one contender."""
    with running(name, NPM_FOLDER) as port:
        _create_stream(RawClient(port))
        context = multiprocessing.get_context("spawn")
        go, stop, results = context.Event(), context.Event(), context.Queue()
        drained_by = context.Value("d", 0.0)
        workers = [
            context.Process(target=produce, args=(port, seed, go, stop, results), daemon=True)
            for seed in range(PRODUCERS)
        ] + [
            context.Process(target=consume, args=(port, go, stop, drained_by, results), daemon=True)
            for _ in range(CONSUMERS)
        ]
        try:
            for worker in workers:
                worker.start()
            for _ in workers:
                assert _next(name, results, workers, 60) == "ready"
            began = time.perf_counter()
            go.set()
            time.sleep(seconds)
            drained_by.value = time.monotonic() + DRAIN_SECONDS
            stop.set()
            elapsed = time.perf_counter() - began
            reports = [_next(name, results, workers, DRAIN_SECONDS + 60) for _ in workers]
        finally:
            for worker in (one for one in workers if one.pid):
                worker.terminate()
                worker.join()
    acknowledged = sum(count for kind, count in reports if kind == "acknowledged")
    reads = [counts for kind, counts in reports if kind == "read"]
    out = sum(at_stop for at_stop, _ in reads)
    return Run(name, acknowledged, acknowledged / elapsed, out / elapsed, tuple(total for _, total in reads))


def _next(name: str, results: Any, workers: Sequence[BaseProcess], seconds: float) -> Any:
    """What a worker reports next.

    Raises:
        UnavailableError: one has failed, as when the server is gone, or reports nothing.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return results.get(timeout=0.5)
        except Empty:
            if any(worker.exitcode for worker in workers):
                raise UnavailableError(f"{name} broke off with a producer or a consumer") from None
            if time.monotonic() > deadline:
                raise UnavailableError(f"{name} kept a producer or a consumer for {seconds:.0f} s") from None


def _create_stream(client: RawClient) -> None:
    client.call("CreateStream", StreamName=STREAM, ShardCount=SHARDS)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        summary = client.call("DescribeStreamSummary", StreamName=STREAM)["StreamDescriptionSummary"]
        if summary["StreamStatus"] == "ACTIVE":
            return
        time.sleep(0.1)
    raise UnavailableError(f"the stream did not become ACTIVE: {summary}")


def compare(seconds: float, rounds: int, say: Callable[[str], None]) -> list[Result]:
    """All contenders in turn, each round; the median of each."""
    runs: dict[str, list[Run]] = {}
    telling = Telling(rounds * len(CONTENDERS))
    for round_ in range(rounds):
        for name in CONTENDERS:
            try:
                with telling.measuring(f"{name}, round {round_ + 1}"):
                    run = measure(name, seconds)
            except UnavailableError as error:
                say(f"round {round_ + 1}: {name}: left out: {error}")
                continue
            say(f"round {round_ + 1}: {name}: in {run.in_per_second:,.0f}/s, out {run.out_per_second:,.0f}/s")
            runs.setdefault(name, []).append(run)
    return [_summarise(name, found) for name, found in runs.items()]


def _summarise(name: str, runs: list[Run]) -> Result:
    return Result(
        name,
        statistics.median(run.in_per_second for run in runs),
        statistics.median(run.out_per_second for run in runs),
        tuple(run.in_per_second for run in runs),
        all(run.complete for run in runs),
    )


def table(results: list[Result]) -> str:
    """The results for people; how often the best of the others fits into ours."""
    lines = [f"{'server':<17}{'in, records/s':>15}{'out, records/s':>16}{'all read back':>15}"]
    for result in results:
        lines.append(
            f"{result.contender:<17}{result.in_per_second:>15,.0f}{result.out_per_second:>16,.0f}"
            f"{'yes' if result.complete else 'no':>15}"
        )
    ours = [result.in_per_second for result in results if result.contender == "lakestream"]
    others = [result.in_per_second for result in results if result.contender not in OURS]
    if ours and others:
        lines.append(f"\nours takes in {ours[0] / max(others):.1f} times as many as the best of the others")
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write the figures."""
    parser = argparse.ArgumentParser(description="Records per second of servers that speak the Kinesis API.")
    parser.add_argument("--seconds", type=above_zero, default=6.0, help="how long the producers of a round put")
    parser.add_argument("--rounds", type=whole(), default=2)
    parser.add_argument("--out", type=out_file, help="where to write the figures as JSON")
    options = parser.parse_args()
    results = compare(options.seconds, options.rounds, lambda line: print(line, flush=True))
    print(table(results))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        settings = {"seconds": options.seconds, "record_bytes": RECORD_BYTES, "batch": BATCH, "shards": SHARDS}
        figures = {**settings, "results": [asdict(result) for result in results]}
        options.out.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    with no_process_left():
        main()
