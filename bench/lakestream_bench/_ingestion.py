"""A local Kinesis with order events in it, and `lakestream ingest` on it, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from lakestream.control import read_progress
from lakestream_api import Progress
from lakestream_loadgen.events import EVENT_DDL, EventMix, OrderEvents
from lakestream_localkinesis.testing import LocalKinesis

STREAM = "orders"
SHARDS = 4
FULL_SHARD = 1_000
"""Records per second that Kinesis takes per shard."""

WRITERS: dict[str, dict[str, Any]] = {
    "json": {"json": {"partitionBy": ["dt"]}},
    "cow": {"hudi": {"tableType": "COPY_ON_WRITE"}},
    "mor": {"hudi": {"tableType": "MERGE_ON_READ"}},
}
_HUDI = {"recordKey": ["order_id"], "orderingField": "version", "partitionBy": ["dt"], "deleteWhen": "op = 'd'"}


@dataclass(frozen=True)
class Trigger:
    """`spec.trigger`."""

    interval: str
    max_records: int = 500_000


class Orders:
    """Puts order events of one seed into the stream."""

    def __init__(self, server: LocalKinesis) -> None:
        self._client = server.client()
        self._events = OrderEvents(seed=1, worker=0, prefix="b", mix=EventMix(malformed=0.0, customers=20_000))
        self._server = server

    def put(self, count: int) -> None:
        """Put so many events now, in requests of 500."""
        for first in range(0, count, 500):
            records = self._events.take(min(500, count - first), time.time())
            answer = self._client.put_records(
                StreamName=STREAM,
                Records=[{"Data": record.data, "PartitionKey": record.partition_key} for record in records],
            )
            if answer["FailedRecordCount"]:
                raise RuntimeError(f"{answer['FailedRecordCount']} records were refused")

    def fill(self, count: int) -> None:
        """Put so many events as if all shards had been full, by the server's clock."""
        a_second = FULL_SHARD * SHARDS
        for first in range(0, count, a_second):
            self.put(min(a_second, count - first))
            self._server.clock.advance(1)

    def stream(self, rate: int, seconds: float) -> Iterator[float]:
        """Put events at a steady rate, yielding the seconds passed after each tenth of a second."""
        began = time.monotonic()
        sent = 0
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate) - sent
            if due > 0:
                self.put(due)
                sent += due
            yield passed
            time.sleep(max(0.0, 0.1 - (time.monotonic() - began - passed)))


def document(server: LocalKinesis, lake: Path, kind: str, trigger: Trigger) -> str:
    """A LakeStream with one writer, `kind`, whose name is the kind's."""
    [(sink, settings)] = WRITERS[kind].items()
    output = {"path": str(lake / kind), **settings, **(_HUDI if sink == "hudi" else {})}
    return yaml.safe_dump(
        {
            "apiVersion": "lakestream.dev/v1alpha1",
            "kind": "LakeStream",
            "metadata": {"name": "bench"},
            "spec": {
                "source": {"kinesis": {"stream": STREAM, "region": server.region, "endpoint": server.endpoint}},
                "schema": EVENT_DDL,
                "transform": "SELECT *, date_format(created_at, 'yyyy-MM-dd') AS dt FROM events",
                "trigger": {"interval": trigger.interval, "maxRecordsPerBatch": trigger.max_records},
                "writers": [{"name": kind, sink: output}],
                "checkpoint": str(lake / "checkpoint"),
                "resources": {"driver": {"memory": "3g"}},
            },
        }
    )


@dataclass
class Ingestion:
    """A running `lakestream ingest`."""

    process: subprocess.Popen[bytes]
    progress_file: Path
    log: Path

    def batches(self) -> list[Progress]:
        """What it has committed so far, without heartbeats."""
        return [batch for batch in read_progress(self.progress_file) if batch.records]

    def wait_for(self, batches: int, timeout: float) -> None:
        """Wait until so many batches are committed."""
        deadline = time.monotonic() + timeout
        while len(self.batches()) < batches:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no batch {batches}; the log ends with:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.2)

    def finish(self, timeout: float = 600) -> list[Progress]:
        """Wait until it has ended by itself."""
        if self.process.wait(timeout) != 0:
            raise RuntimeError(f"lakestream ingest failed:\n{self.log.read_text()[-3000:]}")
        return self.batches()


@contextmanager
def ingest(
    server: LocalKinesis, folder: Path, kind: str, trigger: Trigger, *, until_caught_up: bool
) -> Iterator[Ingestion]:
    """Run one writer on all cores; it is drained at the end of the block."""
    folder.mkdir(parents=True)
    (folder / "lakestream.yaml").write_text(document(server, folder, kind, trigger))
    progress, log = folder / "progress.jsonl", folder / "log"
    command = [sys.executable, "-m", "lakestream.main", "ingest", "-f", str(folder / "lakestream.yaml")]
    command += ["--writer", kind, "--progress-file", str(progress), *(["--until-caught-up"] if until_caught_up else [])]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output, env={**os.environ, **server.environment()})
        try:
            yield Ingestion(process, progress, log)
        finally:
            process.terminate()
            process.wait(60)


def now() -> str:
    """For the result."""
    return datetime.now(UTC).isoformat(timespec="seconds")
