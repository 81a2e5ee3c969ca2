"""What executors find while they read, brought to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pyspark import AccumulatorParam
from pyspark.sql import SparkSession

from lakestream.kinesis import KinesisSettings
from lakestream.model import Finding, ShardRange, united
from lakestream.spark.read import Reader

if TYPE_CHECKING:
    import pyarrow as pa

_Found: TypeAlias = Mapping[int, tuple[Finding, ...]]
"""By batch."""

FindingReader: TypeAlias = Callable[[KinesisSettings, Sequence[ShardRange]], "Iterator[pa.RecordBatch | Finding]"]
"""Yields the records of ranges, and what else it found; pickled."""

_BATCHES = 4
"""So many of the newest are remembered: more than are ever in hand."""


class Findings:
    """Those of the last batches. Picklable: executors tell, the driver asks.

    An accumulator, and not rows beside the records: whenever a task succeeds, the driver has what it found before it
    learns of that success; of a task, too, that is run a second time while the sink writes, since its executor was lost
    with the records that it held, and that may find less in the stream than the first one.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._found = spark.sparkContext.accumulator({}, _Union())

    def kept(self, batch: int, reader: FindingReader) -> Reader:
        """A reader of the records alone; what the given one finds is kept for the driver."""

        def read(settings: KinesisSettings, ranges: Sequence[ShardRange]) -> Iterator[pa.RecordBatch]:
            for part in reader(settings, ranges):
                if isinstance(part, Finding):
                    self._found.add({batch: (part,)})
                else:
                    yield part

        return read

    def of(self, batch: int) -> tuple[Finding, ...]:
        """What was found in a batch so far, sorted by shard. On the driver."""
        return self._found.value.get(batch, ())


class _Union(AccumulatorParam[_Found]):
    """The same whatever comes first or twice, as tasks that are repeated do."""

    def zero(self, value: _Found) -> _Found:
        return {}

    def addInPlace(self, value1: _Found, value2: _Found) -> _Found:  # noqa: N802 - PySpark's name
        batches = sorted(value1.keys() | value2.keys())[-_BATCHES:]
        return {batch: united((*value1.get(batch, ()), *value2.get(batch, ()))) for batch in batches}
