"""What tasks have read, counted while they read it, and brought to the driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import AccumulatorParam

from lakestream.kinesis.batches import REASON, stored_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUANTILES = [step / 20 for step in range(21)]
"""Arrival times that stand for all of them: the first, every 5 %, the last."""

_Become: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_BATCHES = 4
"""So many of the newest are remembered: more than are ever in hand."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What one task has read of one shard: one record at least."""

    shard_id: str
    records: int
    """User records."""
    kinesis_records: int
    """As Kinesis counts them, a KPL aggregate as one."""
    bytes: int
    """Their data."""
    kinesis_bytes: int
    """As Kinesis counts them (`stored_bytes`)."""
    filtered: int
    """User records that a filter leaves out."""
    rejected: int
    """Those with a reason."""
    arrivals: tuple[int, ...]
    """`QUANTILES` of their arrival times, in microseconds since the epoch."""


_ByBatch: TypeAlias = Mapping[int, Mapping[int, tuple[Tally, ...]]]
"""By batch and task."""


class Tallies:
    """Those of the last batches. Picklable: executors count, the driver asks.

    An accumulator: whenever a task succeeds, the driver has its tally before it learns of that success. A task that is
    run twice reads the same records, and so tells the same.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._found = spark.sparkContext.accumulator({}, _Latest())

    def kept(
        self, batch: int, task: int, records: Iterable[pa.RecordBatch], part: _Become, become: _Become
    ) -> Iterator[pa.RecordBatch]:
        """What becomes of the records of a task, as it is; once all is handed on, the driver is told how many there
        were.

        Args:
            batch: its number.
            task: of the batch.
            records: raw ones (`lakestream.kinesis.SCHEMA`), each shard's in batches of its own.
            part: makes user records of them.
            become: makes events of these (`typed`).
        """
        shards: defaultdict[str, _Count] = defaultdict(_Count)
        for events in become(_counted(part(_weighed(records, shards)), shards)):
            if events.num_rows:
                shards[events.column("_shard_id")[0].as_py()].hand_on(events)
            yield events
        self._found.add({batch: {task: tuple(count.tally(shard) for shard, count in sorted(shards.items()))}})

    def of(self, batch: int) -> Mapping[int, tuple[Tally, ...]]:
        """The tallies of a batch so far, by task. On the driver."""
        return self._found.value.get(batch, {})


def _weighed(records: Iterable[pa.RecordBatch], shards: defaultdict[str, _Count]) -> Iterator[pa.RecordBatch]:
    for part in records:
        if part.num_rows:
            shards[part.column("shard_id")[0].as_py()].weigh(part)
        yield part


def _counted(records: Iterable[pa.RecordBatch], shards: defaultdict[str, _Count]) -> Iterator[pa.RecordBatch]:
    for part in records:
        if part.num_rows:
            shards[part.column("shard_id")[0].as_py()].add(part)
        yield part


@dataclass(slots=True)
class _Count:
    records: int = 0
    kinesis_records: int = 0
    bytes: int = 0
    kinesis_bytes: int = 0
    handed_on: int = 0
    rejected: int = 0
    arrivals: list[pa.Array] = field(default_factory=list)

    def weigh(self, records: pa.RecordBatch) -> None:
        # User records of an aggregate are numbered from 0 on.
        self.kinesis_records += pc.sum(pc.equal(records.column("sub_sequence"), 0)).as_py()
        self.bytes += pc.sum(pc.binary_length(records.column("data"))).as_py()
        self.kinesis_bytes += stored_bytes(records)

    def add(self, records: pa.RecordBatch) -> None:
        self.records += records.num_rows
        self.arrivals.append(records.column("arrival").cast(pa.int64()))

    def hand_on(self, events: pa.RecordBatch) -> None:
        self.handed_on += events.num_rows
        self.rejected += events.num_rows - events.column(REASON).null_count

    def tally(self, shard_id: str) -> Tally:
        quantiles = pc.quantile(pa.chunked_array(self.arrivals), QUANTILES, interpolation="lower").to_pylist()
        return Tally(
            shard_id=shard_id,
            records=self.records,
            kinesis_records=self.kinesis_records,
            bytes=self.bytes,
            kinesis_bytes=self.kinesis_bytes,
            filtered=self.records - self.handed_on,
            rejected=self.rejected,
            arrivals=tuple(quantiles),
        )


class _Latest(AccumulatorParam[_ByBatch]):
    """The same whatever comes first or twice."""

    def zero(self, value: _ByBatch) -> _ByBatch:
        return {}

    def addInPlace(self, value1: _ByBatch, value2: _ByBatch) -> _ByBatch:  # noqa: N802 - PySpark's name
        batches = sorted(value1.keys() | value2.keys())[-_BATCHES:]
        return {batch: {**value1.get(batch, {}), **value2.get(batch, {})} for batch in batches}
