"""A local Kinesis with order events in it, and `lakestream ingest` on it, as a user runs it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from lakestream.control import read_progress
from lakestream_api import InvalidDocumentError, Progress, load_lakestream
from lakestream_bench._counting_s3 import CountingS3
from lakestream_bench._processes import ended, failure
from lakestream_loadgen.events import EVENT_DDL, EventMix, OrderEvents
from lakestream_localkinesis.testing import LocalKinesis

if TYPE_CHECKING:
    from mypy_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

STREAM = "orders"
SHARDS = 4
FULL_SHARD = 1_000
"""Records per second that Kinesis takes per shard."""
START_SECONDS = 240.0
"""Spark's start and the first batch, on a busy machine."""

_REQUEST = 500
"""Records of a request, at most."""
_AGAIN_SECONDS = 0.1
_ATTEMPTS = 600
"""Of a request's records: for a minute."""

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
    """Puts order events of one seed into the stream.

    What is refused because a shard is full is put again: after a stutter more is due at once than shards take.
    """

    def __init__(self, server: LocalKinesis, pause: Callable[[float], None] = time.sleep) -> None:
        self.acknowledged = 0
        """Records that the stream took."""
        self.throttled = 0
        """Records refused and put again, each time counted."""
        self._client = server.client()
        self._pause = pause
        self._events = OrderEvents(seed=1, worker=0, prefix="b", mix=EventMix(malformed=0.0, customers=20_000))
        self._server = server

    def put(self, count: int) -> None:
        """Put so many events now; returns when all are acknowledged."""
        for first in range(0, count, _REQUEST):
            taken = self._events.take(min(_REQUEST, count - first), time.time())
            self._put([{"Data": record.data, "PartitionKey": record.partition_key} for record in taken])

    def fill(self, count: int) -> None:
        """Put so many events as if all shards had been full, by the server's clock."""
        a_second = FULL_SHARD * SHARDS
        for first in range(0, count, a_second):
            self.put(min(a_second, count - first))
            self._server.clock.advance(1)

    def stream(self, rate: int, seconds: float) -> Iterator[float]:
        """Put events at a steady rate, yielding the seconds passed after each tenth of a second.

        What a stutter has delayed is made up for: the rate is that of acknowledged records over the whole time.
        """
        began = time.monotonic()
        before = self.acknowledged
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate) - (self.acknowledged - before)
            if due > 0:
                self.put(due)
            yield passed
            self._pause(max(0.0, 0.1 - (time.monotonic() - began - passed)))

    def _put(self, records: Sequence[PutRecordsRequestEntryTypeDef]) -> None:
        for _ in range(_ATTEMPTS):
            results = self._client.put_records(StreamName=STREAM, Records=records)["Records"]
            refused = [
                record for record, result in zip(records, results, strict=True) if result.get("ErrorCode") is not None
            ]
            self.acknowledged += len(records) - len(refused)
            self.throttled += len(refused)
            if not refused:
                return
            records = refused
            self._pause(_AGAIN_SECONDS)
        raise RuntimeError(f"{len(records)} records were refused {_ATTEMPTS} times")


class Source(NamedTuple):
    """Where the stream is."""

    region: str
    endpoint: str


def require_hudi(parser: argparse.ArgumentParser, fields: Mapping[str, Any], kinds: Sequence[str]) -> None:
    """End a command, before anything is measured, if none of its `--writers` has a Hudi table, or a document does not
    take the fields of `hudi` that its `--hudi` gives."""
    tables = [kind for kind in kinds if "hudi" in WRITERS[kind]]
    if fields and not tables:
        parser.error("--hudi: no writer of --writers writes to Hudi")
    nowhere = Source("us-east-1", "http://127.0.0.1")
    try:
        for kind in tables:
            load_lakestream(document(nowhere, "file:///lake", kind, Trigger("1s"), fields))
    except InvalidDocumentError as error:
        parser.error(f"--hudi: {error}")


def document(source: Source, lake: str, kind: str, trigger: Trigger, hudi: Mapping[str, Any] | None = None) -> str:
    """A LakeStream with one writer, `kind`, whose name is the kind's; `hudi` are fields of a Hudi table beside ours."""
    [(sink, settings)] = WRITERS[kind].items()
    fields = {**_HUDI, **(hudi or {})} if sink == "hudi" else {}
    output = {"path": f"{lake}/{kind}", **settings, **fields}
    return yaml.safe_dump(
        {
            "apiVersion": "lakestream.dev/v1alpha1",
            "kind": "LakeStream",
            "metadata": {"name": "bench"},
            "spec": {
                "source": {"kinesis": {"stream": STREAM, **source._asdict()}},
                "schema": EVENT_DDL,
                "transform": "SELECT *, date_format(created_at, 'yyyy-MM-dd') AS dt FROM events",
                "trigger": {"interval": trigger.interval, "maxRecordsPerBatch": trigger.max_records},
                "writers": [{"name": kind, sink: output}],
                "checkpoint": f"{lake}/checkpoint",
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

    def wait_for(self, batches: int) -> None:
        """Wait until so many batches are committed, and for each no longer than for a start."""
        done, deadline = len(self.batches()), time.monotonic() + START_SECONDS
        while done < batches:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise failure(f"{done} of {batches} batches", self.log)
            time.sleep(0.2)
            if (more := len(self.batches())) > done:
                done, deadline = more, time.monotonic() + START_SECONDS

    def finish(self, timeout: float = 600) -> list[Progress]:
        """Wait until it has ended by itself."""
        if self.process.wait(timeout) != 0:
            raise RuntimeError(f"lakestream ingest failed:\n{self.log.read_text()[-3000:]}")
        return self.batches()


@contextmanager
def ingest(
    server: LocalKinesis,
    folder: Path,
    kind: str,
    trigger: Trigger,
    *,
    until_caught_up: bool,
    slots: int | None = None,
    s3: CountingS3 | None = None,
    hudi: Mapping[str, Any] | None = None,
) -> Iterator[Ingestion]:
    """Run one writer on so many task slots, or all cores; it is drained at the end of the block.

    In a folder that has been used it goes on where that run was. The lake is in it, or in the bucket of an S3 server.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lake = str(folder) if s3 is None else s3.lake
    (folder / "lakestream.yaml").write_text(document(Source(server.region, server.endpoint), lake, kind, trigger, hudi))
    progress, log = folder / "progress.jsonl", folder / "log"
    command = [sys.executable, "-m", "lakestream.main", "ingest", "-f", str(folder / "lakestream.yaml")]
    command += ["--writer", kind, "--progress-file", str(progress), *(["--until-caught-up"] if until_caught_up else [])]
    command += [] if slots is None else ["--cores", str(slots)]
    environment = {**os.environ, **server.environment(), **({} if s3 is None else s3.environment())}
    with log.open("wb") as output, ended(subprocess.Popen(command, stderr=output, env=environment)) as process:
        yield Ingestion(process, progress, log)


def freshness(batches: Sequence[Progress], name: str, quantile: float) -> float:
    """A quantile of what batches say of their freshness (`p50_seconds`, …), each as heavy as it has records."""
    values = sorted((getattr(batch.freshness, name), batch.records) for batch in batches if batch.freshness)
    total = sum(weight for _, weight in values)
    below = 0
    for value, weight in values:
        below += weight
        if below >= quantile * total:
            return float(value)
    raise ValueError("no batch had records")


def now() -> str:
    """For the result."""
    return datetime.now(UTC).isoformat(timespec="seconds")
