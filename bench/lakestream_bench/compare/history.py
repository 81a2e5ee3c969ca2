"""One stream and one sequence of plans for all arms: who replays them reads the same records, batch by batch."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from lakestream.kinesis import HttpKinesisClient, KinesisSettings, Planner, PlannerSettings
from lakestream.model import BatchCommit, BatchPlan, Cursor, Portion, SpanDue, Trim
from lakestream_bench.compare.scenarios import Scenario
from lakestream_bench.compare.truth import BATCH, Truth
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.events import OrderEvents
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

if TYPE_CHECKING:
    from lakestream_loadgen.records import Record

STREAM = "orders"
SHARDS = 4
SEED = 1
_FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
_REQUEST = 500
_DAY = 86_400.0
_APART = 1.0
"""Seconds of the server's clock between two batches: a plan takes what has settled for a quarter of one."""

_ATTEMPTS = 10


@dataclass(frozen=True)
class History:
    """A stream, how it is to be read, and what is right."""

    source: KinesisSettings
    plans: tuple[BatchPlan, ...]
    truth: Truth
    arrived: tuple[datetime, ...]
    """A moment behind the arrival of each batch's last record, before the first of the next."""


@contextmanager
def recorded(scenario: Scenario) -> Iterator[History]:
    """Fill a stream batch by batch, and plan each; the stream is there until the block ends.

    The planner is the driver's own; it sees one batch at a time, so that no batch depends on how fast this machine is.
    """
    with local_kinesis(limits=Limits.none()) as server:
        server.create_stream(STREAM, shards=SHARDS)
        source = KinesisSettings(stream=STREAM, region=server.region, endpoint=server.endpoint)
        client = HttpKinesisClient(source)
        try:
            with Planner(client, PlannerSettings(starting_position="TRIM_HORIZON"), slots=lambda: 2) as planner:
                yield _record(scenario, server, source, planner)
        finally:
            client.close()


def _record(scenario: Scenario, server: LocalKinesis, source: KinesisSettings, planner: Planner) -> History:
    events = OrderEvents(seed=SEED, worker=0, prefix="c", mix=scenario.mix)
    text = random.Random(SEED)
    tables: list[pa.Table] = []
    plans: list[BatchPlan] = []
    arrived: list[datetime] = []
    for batch, size in enumerate(scenario.sizes):
        made = _FIRST_DAY.timestamp() + batch * scenario.days * _DAY / scenario.batches
        records = [_widened(record, scenario.wider, text) for record in events.take(size, made)]
        tables.append(_acknowledged(server, records, batch))
        full = server.clock.now()
        arrived.append(full + timedelta(seconds=_APART))
        server.clock.advance(2 * _APART)
        cursors, trim = (plans[-1].cursors, plans[-1].trim) if plans else ((), None)
        plans.append(_plan(planner, batch, cursors, trim, full))
    return History(source, tuple(plans), Truth(pa.concat_tables(tables)), tuple(arrived))


def _widened(record: Record, letters: int, text: random.Random) -> Record:
    """With a longer note, which hardly compresses."""
    if not letters:
        return record
    more = "".join(text.choices(string.ascii_letters, k=letters)).encode()
    return record._replace(data=record.data.replace(b'"note":"', b'"note":"' + more))


def _plan(planner: Planner, batch: int, cursors: tuple[Cursor, ...], trim: Trim | None, full: datetime) -> BatchPlan:
    """The plan of all that arrived until `full`."""
    # The client learns from answers how far the server's clock has been put forward: the first plans may end before
    # that, with nothing or with a part.
    for _ in range(_ATTEMPTS):
        plan = planner.plan(batch=batch, epoch=1, cursors=cursors, trim=trim)
        if plan is not None and plan.caught_up and plan.horizon > full:
            return plan
    raise RuntimeError(f"batch {batch} could not be planned as a whole")


def _acknowledged(server: LocalKinesis, records: Sequence[Record], batch: int) -> pa.Table:
    """Put records; returns those that were acknowledged, which are all."""
    sequences: list[str] = []
    client = server.client()
    for first in range(0, len(records), _REQUEST):
        part = records[first : first + _REQUEST]
        answer = client.put_records(
            StreamName=STREAM, Records=[{"Data": one.data, "PartitionKey": one.partition_key} for one in part]
        )
        if answer["FailedRecordCount"]:
            raise RuntimeError(f"the local Kinesis refused {answer['FailedRecordCount']} of {len(part)} records")
        sequences += [result["SequenceNumber"] for result in answer["Records"]]
    table = pa.Table.from_pylist([_typed(record.data) for record in records], EVENT_SCHEMA)
    table = table.append_column("_arrival", pa.array([f"{batch:06}"] * len(records)))
    table = table.append_column("_sequence_number", pa.array(sequences, pa.string()))
    return table.append_column(BATCH, pa.array([batch] * len(records), pa.int64()))


def _typed(data: bytes) -> dict[str, object]:
    event: dict[str, object] = orjson.loads(data)
    return {**event, **{name: datetime.fromisoformat(str(event[name])) for name in ("created_at", "updated_at")}}


class RecordedPlanner:
    """The engine's `Planner` that hands out plans that were made before."""

    def __init__(self, plans: Sequence[BatchPlan]) -> None:
        self._plans = iter(plans)
        self._last = plans[-1].batch
        self._done = False

    @property
    def caught_up_to(self) -> datetime | None:
        """Behind the last plan there is nothing."""
        return datetime.now(UTC) if self._done else None

    @property
    def missing(self) -> timedelta | None:
        """Nothing."""
        return timedelta(0) if self._done else None

    def plan(self, *, batch: int, epoch: int, cursors: tuple[Cursor, ...], trim: Trim | None) -> BatchPlan | None:
        """The next one; only the last one is said to reach the tip, so that the engine waits before none."""
        plan = next(self._plans, None)
        if plan is None:
            return None
        if plan.batch != batch:
            raise RuntimeError(f"batch {batch} is wanted, and the next recorded one is {plan.batch}")
        self._done = plan.batch == self._last
        return replace(plan, epoch=epoch, caught_up=self._done)

    def portion(self, due: SpanDue, trim: Trim | None, records: int) -> Portion | None:
        """Nobody asks for any."""
        return None

    def observe(self, commit: BatchCommit) -> None:
        """The plans are what they are."""
