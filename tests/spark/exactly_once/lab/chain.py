"""Chains of drivers: each recovers from the end of the one before, and is ended in its turn; the last one drains."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from lab.driver import Driver, DriverError, Ingest, child_environment, small_cluster, tail_of
from lab.here import ingest_here, log_of
from lab.ingest import PATIENCE
from lab.lake import Writer, log_listing
from lab.links import Link
from lab.stream import MAX_RECORDS_PER_BATCH, OrderStream
from lakestream.control.files import read_progress
from lakestream_api import Progress
from lakestream_loadgen.events import EVENT_DDL
from lakestream_localkinesis.testing import LocalKinesis

BURSTS = 4
"""New batches before each start."""
STILL_SECONDS = 120.0
"""For so long the machine may stand still, or its S3 not answer, under a driver that has no rival."""
TRAFFIC_SECONDS = 1.0
"""Between two bursts while a driver runs, so that there is always another batch."""


class Table(StrEnum):
    """What a chain writes to."""

    JSON = "json"
    MOR = "mor"
    COW = "cow"
    MOR_9 = "mor-9"
    """Of table version 9; the others are of the one that new tables get."""
    INSERT = "insert"
    """Copy-on-write, without looking keys up: nothing but the batch's mark keeps a row from being there twice."""
    MOR_INSERT = "mor-insert"
    """Its small files are merged beside the batches."""

    @property
    def is_snapshot(self) -> bool:
        """Whether it has one row per live key, not one per event."""
        return self in (Table.MOR, Table.COW, Table.MOR_9)


_MERGED = (Table.MOR, Table.MOR_9, Table.MOR_INSERT)


@dataclass(frozen=True)
class Chain:
    """A writer, and what happens to it."""

    table: Table
    place: str
    """`folder` or `s3`."""
    links: tuple[Link, ...]

    @property
    def name(self) -> str:
        return f"{self.table}-{self.place}"


def lake_document(stream: OrderStream, table: Table, root: str, **spec: Any) -> dict[str, Any]:
    """A LakeStream document for one writer, called `orders`."""
    if table is Table.JSON:
        output: dict[str, Any] = {"json": {"path": f"{root}/table", "partitionBy": ["dt"]}}
    else:
        hudi = {
            "path": f"{root}/table",
            "tableType": "MERGE_ON_READ" if table in _MERGED else "COPY_ON_WRITE",
            **({"tableVersion": 9} if table is Table.MOR_9 else {}),
            "recordKey": ["order_id"],
            "partitionBy": ["dt"],
            # Compaction takes part, and looks for what is to be cleaned and archived.
            "compaction": {"everyCommits": 4},
        }
        keyed = {"orderingField": "version", "deleteWhen": "op = 'd'", "index": {"type": "bucket", "buckets": 2}}
        hudi |= keyed | {"operation": "upsert"} if table.is_snapshot else {"operation": "insert"}
        if table is Table.MOR_INSERT:
            hudi["clustering"] = {}
        output = {"hudi": hudi}
    return {
        "apiVersion": "lakestream.dev/v1alpha1",
        "kind": "LakeStream",
        "metadata": {"name": "orders"},
        "spec": {
            "source": {"kinesis": {"stream": stream.name, "region": "us-east-1", "endpoint": stream.server.endpoint}},
            "schema": EVENT_DDL,
            "transform": "SELECT *, date_format(created_at, 'yyyy-MM-dd') AS dt FROM events",
            "trigger": {"interval": "200ms", "maxRecordsPerBatch": MAX_RECORDS_PER_BATCH},
            "writers": [{"name": "orders", **output}],
            "checkpoint": f"{root}/checkpoint",
            "resources": {"driver": {"cores": 1, "memory": "1g"}},
            **spec,
        },
    }


class Lab:
    """A stream, a writer, and drivers for it."""

    def __init__(
        self,
        stream: OrderStream,
        table: Table,
        folder: Path,
        root: str,
        s3: str | None,
        *,
        cluster: bool = False,
        patience: float = STILL_SECONDS,
    ) -> None:
        self.stream = stream
        self.table = table
        self.writer = Writer("orders", f"{root}/table", f"{root}/checkpoint/orders", s3)
        self.folder = folder
        self.document = lake_document(stream, table, root)
        self.path = folder / "lakestream.yaml"
        self.drivers: list[Driver] = []
        self.story: list[str] = []
        self._is_ended = False
        more = {} if s3 is None else {"AWS_ENDPOINT_URL_S3": s3, "AWS_ENDPOINT_URL_GLUE": s3}
        environment = child_environment(folder / "scratch", **more, **{PATIENCE: str(patience)})
        self._ingest = Ingest(self.path, "orders", environment, folder)
        if cluster:
            self._ingest = replace(
                self._ingest, environment=environment | small_cluster(folder / "spark"), options=("--cluster",)
            )

    @contextmanager
    def traffic(self) -> Iterator[None]:
        """A small burst now and then, so that there is always another batch; but no more than drivers commit, or those
        that are late would leave to the next ones ever more."""
        stop = threading.Event()

        def committed() -> int:
            return sum(len(read_progress(driver.progress)) for driver in self.drivers)

        def send() -> None:
            last = -1
            while not stop.wait(TRAFFIC_SECONDS):
                if (now := committed()) != last:
                    self.stream.put(1, records=15)
                    last = now

        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(send)
            try:
                yield
            finally:
                stop.set()
                sending.result()

    def save(self) -> None:
        """Write the document down, as it is now."""
        self.path.write_text(yaml.safe_dump(self.document, sort_keys=False))

    def start(self, *, crash_at: str | None = None, until_caught_up: bool = False) -> Driver:
        if self._is_ended:
            raise DriverError("the tests are being ended")
        self.save()
        name = f"driver-{len(self.drivers) + 1:02d}"
        driver = Driver(self._ingest, name, crash_at=crash_at, until_caught_up=until_caught_up)
        self.drivers.append(driver)
        return driver

    def drain(self) -> None:
        """Run a driver to the tip of the stream."""
        driver = self.start(until_caught_up=True)
        began = time.monotonic()
        status = driver.wait(300)
        self.story.append(f"{driver.name} drained in {time.monotonic() - began:.1f} s")
        if status != 0:
            raise DriverError(f"{driver.name} ended with {status}\n{driver.tail()}")

    def catch_up(self, spark: SparkSession) -> list[Progress]:
        """The same in this process and its Spark, without the start of a driver; gives what is told of its batches."""
        self.save()
        began = time.monotonic()
        batches = ingest_here(self._ingest, spark)
        self.story.append(f"{len(batches)} batches up to the tip, here, in {time.monotonic() - began:.1f} s")
        return batches

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What fails meanwhile is told with the evidence."""
        try:
            yield
        except Exception as error:
            raise AssertionError(f"{error}\n{self.evidence()}") from error

    def evidence(self) -> str:
        """What a person would look at."""
        tails = [driver.tail() for driver in self.drivers[-2:]]
        here = tail_of(log_of(self._ingest))
        return "\n".join(["--- what happened", *self.story, log_listing(self.writer), *tails, here])

    def end(self) -> None:
        """Kill what is left, and start nothing more."""
        self._is_ended = True
        for driver in self.drivers:
            driver.end()

    def close(self) -> None:
        """Nothing of the drivers may be left; half a minute after the last one it is not."""
        for driver in self.drivers:
            driver.bury()


class Labs:
    """Makes labs, each with a stream and a folder of its own."""

    def __init__(self, server: LocalKinesis, folder: Path, s3: str, bucket: str) -> None:
        self._server = server
        self._folder = folder
        self._s3 = s3
        self._bucket = bucket
        self._numbers = count(1)
        self._made: list[Lab] = []

    def make(
        self,
        table: Table,
        place: str = "folder",
        *,
        cluster: bool = False,
        s3: str = "",
        patience: float = STILL_SECONDS,
    ) -> Lab:
        """A new lab; on a cluster, executors are processes of their own. S3 may be behind another URL than usual."""
        number = next(self._numbers)
        name = f"{table}-{place}-{number}"
        folder = self._folder / name
        folder.mkdir()
        is_on_s3 = place == "s3"
        root = f"s3a://{self._bucket}/{name}" if is_on_s3 else str(folder / "lake")
        stream = OrderStream(self._server, name, seed=number)
        made = Lab(
            stream, table, folder, root, (s3 or self._s3) if is_on_s3 else None, cluster=cluster, patience=patience
        )
        self._made.append(made)
        return made

    def end(self) -> None:
        """End what a failed test has left running."""
        for lab in self._made:
            lab.end()


def let_happen(lab: Lab, links: Sequence[Link]) -> None:
    """To one driver after the other."""
    for link in links:
        lab.stream.put(BURSTS, unusable={1})
        began = time.monotonic()
        with lab.traffic():
            link.carry_out(lab)
        lab.story.append(f"{lab.drivers[-1].name}: {link}; {time.monotonic() - began:.1f} s")


def take_more(lab: Lab) -> None:
    """What the killed ones did not get to, and more, is read in a few batches."""
    lab.stream.put(BURSTS)
    lab.document["spec"]["trigger"]["maxRecordsPerBatch"] = 100 * MAX_RECORDS_PER_BATCH


def end_with_all(lab: Lab) -> None:
    """Let the driver that runs commit all that the stream has; then end it."""
    driver, records = lab.drivers[-1], lab.stream.truth().records
    driver.until(
        lambda: sum(batch.records for batch in read_progress(driver.progress)) >= records, f"{records} records"
    )
    driver.process.terminate()
    if status := driver.wait():
        raise DriverError(f"{driver.name} ended with {status}\n{driver.tail()}")
