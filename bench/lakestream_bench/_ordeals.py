"""What contenders lose or double: two reshards beside them, and kills; their tables against what the stream took."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import hudi
import orjson
import pyarrow as pa

from lakestream_bench._contenders import Contender, started, table_of
from lakestream_bench._ingestion import SHARDS, START_SECONDS, STREAM, Orders
from lakestream_bench._processes import failure
from lakestream_bench._rival import FROM_FILES
from lakestream_loadgen.audit import compare, fold
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

if TYPE_CHECKING:
    from lakestream_localkinesis.testing import StoredRecord

PART = 2
"""Batches of events before, between and behind two reshards."""
QUIET_SECONDS = 40.0
"""Without a batch for so long, a contender that follows a stream has read what it will read."""
_LOOK_SECONDS = 0.2


class Ordeals(StrEnum):
    """What is done to a contender."""

    RESHARDS = "reshards"
    """The stream gets twice the shards, and as few as before again, while it runs."""
    KILLS = "kills"
    """All its processes are killed behind a batch, and it is started again as it was."""


@dataclass(frozen=True)
class Ordeal:
    """What was left of the events at the end."""

    contender: str
    ordeal: Ordeals
    count: int
    """Reshards, or kills."""
    events: int
    """In the stream."""
    read_again: int
    """Events that it said to have written beyond those in the stream."""
    orders: int
    """That the table should have."""
    lost: int
    """Orders that it does not have."""
    outdated: int
    """Orders that it has in another version, or with other content."""
    doubled: int
    """Rows beyond the first of their order."""
    undeleted: int
    """Orders that were deleted and are still there."""


def takes(name: str, ordeal: Ordeals) -> bool:
    """Whether an ordeal is one for a contender: who reads files does not see shards; whoever writes them does."""
    return ordeal is Ordeals.KILLS or name not in FROM_FILES


def undergo(name: str, ordeal: Ordeals, kills: int, folder: Path, batch: int) -> Ordeal:
    """Put one contender through one ordeal, on a stream of its own.

    Raises:
        RuntimeError: it did not come to an end; the message has the end of its log.
    """
    with local_kinesis(limits=Limits.none()) as server:
        server.create_stream(STREAM, shards=SHARDS)
        orders = Orders(server)
        if ordeal is Ordeals.KILLS:
            # A kill comes behind a batch, and some are quick: enough is left for all, and for the run behind the last.
            # Our planner cuts batches by arrival time.
            server.clock.freeze()
            orders.fill(2 * (kills + 1) * batch)
            server.clock.resume()
            count, told = _kill(name, server, folder, batch, kills)
        else:
            count, told = _reshard(name, server, folder, batch, orders)
        truth = expected(server.records(STREAM))
    return verdict(name, ordeal, count, truth, _read(table_of(name, folder)), told)


def _kill(name: str, server: LocalKinesis, folder: Path, batch: int, kills: int) -> tuple[int, int]:
    """Returns how often it was killed, which is less if it came to the end before, and what it told."""
    killed = 0
    for _ in range(kills):
        with started(name, server, folder, batch) as run:
            if not _await_batch(run):
                break
            run.kill()
            killed += 1
    with started(name, server, folder, batch) as run:
        try:
            status = run.process.wait(4 * START_SECONDS)
        except subprocess.TimeoutExpired:
            raise failure(f"{name} did not come to an end in {4 * START_SECONDS:.0f} s", run.log) from None
        if status != 0:
            raise failure(f"{name} failed", run.log)
        return killed, run.events()


def _reshard(name: str, server: LocalKinesis, folder: Path, batch: int, orders: Orders) -> tuple[int, int]:
    """Returns the number of reshards, and what it told."""
    part = PART * batch
    client = server.client()
    with started(name, server, folder, batch, follow=True) as run:
        for number, shards in enumerate((2 * SHARDS, SHARDS, None), 1):
            orders.put(part)
            if number == 1:
                _await_batch(run)
            _settle(run, number * part)
            if shards is not None:
                client.update_shard_count(StreamName=STREAM, TargetShardCount=shards, ScalingType="UNIFORM_SCALING")
        return 2, run.events()


def _await_batch(run: Contender) -> bool:
    """Wait for the first batch of this run; whether there was one before it came to its end."""
    before = run.events()
    deadline = time.monotonic() + START_SECONDS
    while run.events() == before:
        if run.process.poll() == 0:
            return False
        if run.process.poll() is not None or time.monotonic() > deadline:
            raise failure("no batch", run.log)
        time.sleep(_LOOK_SECONDS)
    return True


def _settle(run: Contender, events: int) -> None:
    """Wait until so many events are visible, or until no more will be."""
    seen, since = run.events(), time.monotonic()
    while seen < events and run.process.poll() is None and time.monotonic() < since + QUIET_SECONDS:
        time.sleep(_LOOK_SECONDS)
        if (now := run.events()) > seen:
            seen, since = now, time.monotonic()


def expected(records: Sequence[StoredRecord]) -> pa.Table:
    """The events of a stream, for `fold`."""
    rows = []
    for record in records:
        event = orjson.loads(record.data)
        times = {name: datetime.fromisoformat(event[name]) for name in ("created_at", "updated_at")}
        rows.append({**event, **times})
    table = pa.Table.from_pylist(rows, EVENT_SCHEMA)
    table = table.append_column("_arrival", pa.array([record.arrival.isoformat() for record in records]))
    return table.append_column("_sequence_number", pa.array([record.sequence_number for record in records]))


def _read(table: Path) -> pa.Table:
    """The snapshot of a Hudi table, by hudi-rs: nobody's own reader.

    Raises:
        RuntimeError: it cannot read it.
    """
    if not table.exists():
        return EVENT_SCHEMA.empty_table()
    try:
        batches = hudi.HudiTable(table.as_uri()).read()
    except Exception as error:  # what it raises is not among the names that it exports
        raise RuntimeError(f"hudi-rs cannot read the table that was left: {error}") from error
    rows = pa.Table.from_batches(batches) if batches else EVENT_SCHEMA.empty_table()
    return rows.select(EVENT_SCHEMA.names)


def verdict(name: str, ordeal: Ordeals, count: int, events: pa.Table, snapshot: pa.Table, told: int) -> Ordeal:
    """Hold a table against the events."""
    alive = fold(events)
    found = compare(alive, snapshot)
    return Ordeal(
        contender=name,
        ordeal=ordeal,
        count=count,
        events=len(events),
        read_again=max(0, told - len(events)),
        orders=len(alive),
        lost=found.missing,
        outdated=found.different,
        doubled=found.doubled,
        undeleted=found.unexpected,
    )
