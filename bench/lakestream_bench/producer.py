"""Records per second of a producer's core, against a server that answers at once.

    python -m lakestream_bench.producer [--seconds 10] [--rounds 3] [--users 1000] [--out producer.json]

Contenders, each in a process of its own, in turn, several rounds in one run:

    locust        our Locust users: events made, batched, signed, sent, answers read, ledger and statistics kept
    boto3         the obvious loop: dicts, json.dumps, put_records of 500, FailedRecordCount looked at
    boto3-events  the same loop on our generator's ready bytes, to tell the client's cost from the events'

The server is another process; what counts is the CPU time of the producer's process alone.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lakestream_bench._options import above_zero, out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_loadgen.testing import answering_server

if TYPE_CHECKING:
    from mypy_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

CONTENDERS = ("locust", "boto3", "boto3-events")


@dataclass(frozen=True)
class Run:
    """One contender, one round."""

    contender: str
    records: int
    wall_seconds: float
    cpu_seconds: float

    @property
    def per_core(self) -> float:
        """Records per second of CPU time."""
        return self.records / self.cpu_seconds


@dataclass(frozen=True)
class Result:
    """A contender's median round."""

    contender: str
    records_per_cpu_second: float
    records_per_second: float
    lowest: float
    highest: float


def measure_locust(seconds: float, users: int) -> Run:
    """Our users in a Locust runner, paced far above what they can do."""
    import gevent
    from locust.argument_parser import get_parser
    from locust.env import Environment

    from lakestream_loadgen.run import LoadRun
    from lakestream_loadgen.settings import add_arguments
    from lakestream_loadgen.users import OrderUser

    with tempfile.TemporaryDirectory() as folder:
        parser = get_parser()
        add_arguments(parser)
        options = parser.parse_args(["--events", "1000000", "--ledger", folder])
        environment = Environment(user_classes=[OrderUser], parsed_options=options)
        runner = environment.create_local_runner()
        LoadRun.install(environment)
        runner.start(users, spawn_rate=users)
        gevent.sleep(2.0)
        records, wall, cpu = environment.stats.total.num_requests, time.perf_counter(), time.process_time()
        gevent.sleep(seconds)
        run = Run(
            "locust",
            environment.stats.total.num_requests - records,
            time.perf_counter() - wall,
            time.process_time() - cpu,
        )
        runner.quit()
    return run


def measure_boto3(name: str, seconds: float) -> Run:
    """``put_records`` in a loop."""
    import boto3

    client = boto3.client("kinesis")
    batch = obvious_events if name == "boto3" else generated_events()
    client.put_records(StreamName="orders", Records=batch())
    records, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        pending = batch()
        while pending:
            answer = client.put_records(StreamName="orders", Records=pending)
            records += len(pending) - answer["FailedRecordCount"]
            pending = [
                record for record, result in zip(pending, answer["Records"], strict=True) if "ErrorCode" in result
            ]
    return Run(name, records, time.perf_counter() - wall, time.process_time() - cpu)


def obvious_events() -> list[PutRecordsRequestEntryTypeDef]:
    """500 events of the same fields and size as ours, as one would write it first."""
    import random
    import uuid
    from datetime import UTC, datetime

    events: list[PutRecordsRequestEntryTypeDef] = []
    for _ in range(500):
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        customer = f"c{random.randrange(100_000)}"
        event = {
            "event_id": str(uuid.uuid4()),
            "order_id": f"order-{random.randrange(1_000_000)}",
            "version": random.randrange(1, 10),
            "op": random.choice("iud"),
            "status": random.choice(["created", "paid", "packed", "shipped"]),
            "customer_id": customer,
            "amount": round(random.uniform(1, 10_000), 2),
            "created_at": now,
            "updated_at": now,
            "note": "ring twice",
        }
        events.append({"Data": json.dumps(event).encode(), "PartitionKey": customer})
    return events


def generated_events() -> Callable[[], list[PutRecordsRequestEntryTypeDef]]:
    """Batches of 500 of the generator that our users use."""
    from lakestream_loadgen.events import EventMix, OrderEvents

    events = OrderEvents(seed=1, worker=0, prefix="bench", mix=EventMix())

    def batch() -> list[PutRecordsRequestEntryTypeDef]:
        taken = events.take(500, time.time())
        return [{"Data": record.data, "PartitionKey": record.partition_key} for record in taken]

    return batch


def measure(contender: str, seconds: float, users: int) -> Run:
    """In a fresh process, against a fresh server."""
    with answering_server() as url:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL_KINESIS": url,
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_DEFAULT_REGION": "eu-west-1",
        }
        command = [sys.executable, "-m", __spec__.name, "--contender", contender]
        command += ["--seconds", str(seconds), "--users", str(users)]
        # What it says beside its figures goes where this program says it.
        done = subprocess.run(
            command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=seconds + 60
        )
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def summarize(runs: list[Run]) -> list[Result]:
    """The median of each contender's rounds."""
    results = []
    for contender in CONTENDERS:
        of_contender = [run for run in runs if run.contender == contender]
        per_core = [run.per_core for run in of_contender]
        results.append(
            Result(
                contender,
                statistics.median(per_core),
                statistics.median(run.records / run.wall_seconds for run in of_contender),
                min(per_core),
                max(per_core),
            )
        )
    return results


def table(results: list[Result]) -> str:
    """For a person."""
    base = next(result for result in results if result.contender == "boto3").records_per_cpu_second
    lines = [f"{'':14}{'records/s per core':>20}{'lowest':>10}{'highest':>10}{'records/s':>12}{'× boto3':>9}"]
    for result in results:
        lines.append(
            f"{result.contender:14}{result.records_per_cpu_second:20,.0f}{result.lowest:10,.0f}"
            f"{result.highest:10,.0f}{result.records_per_second:12,.0f}{result.records_per_cpu_second / base:9.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=above_zero, default=10.0)
    parser.add_argument("--rounds", type=whole(), default=3)
    parser.add_argument("--users", type=whole(), default=1000)
    parser.add_argument("--out", type=out_file)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        logging.disable(logging.WARNING)
        if options.contender == "locust":
            run = measure_locust(options.seconds, options.users)
        else:
            run = measure_boto3(options.contender, options.seconds)
        print(json.dumps(asdict(run)))
        return
    with no_process_left():
        _compare(options)


def _compare(options: argparse.Namespace) -> None:
    telling = Telling(options.rounds * len(CONTENDERS))
    runs: list[Run] = []
    for number in range(options.rounds):
        for contender in CONTENDERS:
            with telling.measuring(f"{contender}, round {number + 1}"):
                runs.append(measure(contender, options.seconds, options.users))
    results = summarize(runs)
    print(table(results))
    if options.out:
        document = {"runs": [asdict(run) for run in runs], "results": [asdict(result) for result in results]}
        options.out.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
