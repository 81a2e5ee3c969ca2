"""The records in a writer's quarantine, of committed batches: what, why, and where they came from."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakestream.ahead import answers
from lakestream.log import BatchFiles
from lakestream.model import FileEntry
from lakestream.query.errors import UnreadableError
from lakestream.ranges import Ranges
from lakestream.rejected import DAMAGED, damaged
from lakestream.storage import LakeStore, ObjectNotFoundError, StoreSettings, open_store, translated

logger = logging.getLogger(__name__)

BATCH = "batch"
SCHEMA = pa.schema(
    [
        (BATCH, pa.int64()),
        ("reason", pa.string()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("sub_sequence", pa.int64()),
        ("partition_key", pa.string()),
        ("arrival", pa.timestamp("us", tz="UTC")),
        ("data", pa.binary()),
    ]
)
"""Columns of a record. Where a transform makes rows of several records, `data` is the row, and it came from nowhere."""
COUNTED = (BATCH, "reason", "arrival")
"""What `tally` needs, which is little beside the data."""
_AS_A_WHOLE = 1 << 20
"""Bytes up to which a file is got by one request, whatever is needed of it."""


@dataclass(frozen=True, slots=True)
class Tally:
    """All records that are there for one reason."""

    reason: str
    records: int
    first_batch: int
    last_batch: int
    first_arrival: datetime | None
    last_arrival: datetime | None


def read_records(
    place: StoreSettings, batches: Iterable[BatchFiles], columns: Sequence[str] = SCHEMA.names
) -> Iterator[pa.RecordBatch]:
    """The records of committed batches, the oldest batch first; by `SCHEMA`.

    Args:
        place: the writer's quarantine.
        batches: as the log has them.
        columns: those that are wanted; of large files no others are got.

    Raises:
        UnreadableError: a file is damaged.
        StorageError, StorageUnavailableError: of the store.
    """
    files = [(batch.batch, entry) for batch in batches for entry in batch.rejects]
    gone: list[FileEntry] = []
    for (_, entry), table in answers(lambda one: _read(place, *one, columns), files):
        if table is None:
            gone.append(entry)
        else:
            yield from table.to_batches()
    if gone:
        logger.warning(
            "%d files with %d records are not there any more, and are passed over: %s under %s, for instance",
            *(len(gone), sum(entry.rows for entry in gone), gone[0].path, place.path),
        )


def _opened(store: LakeStore, place: StoreSettings, entry: FileEntry) -> Ranges:
    what = f"read {entry.path} under {place.path}"

    def get(start: int, end: int) -> bytes:
        with translated(what):
            return bytes(obstore.get_range(store, entry.path, start=start, end=end))

    if entry.bytes > _AS_A_WHOLE:
        return Ranges(get, entry.bytes)
    with translated(what):
        whole = bytes(obstore.get(store, entry.path).bytes())
    return Ranges(lambda start, end: whole[start:end], len(whole))


def _read(place: StoreSettings, batch: int, entry: FileEntry, columns: Sequence[str]) -> pa.Table | None:
    """None: somebody has removed the file."""
    try:
        file = _opened(open_store(place), place, entry)
    except ObjectNotFoundError:
        return None
    try:
        found = pq.read_table(pa.PythonFile(file, mode="r"), columns=[name for name in columns if name != BATCH])
        found = found.append_column(BATCH, pa.repeat(pa.scalar(batch, pa.int64()), found.num_rows))
        found = found.select(columns).cast(pa.schema([SCHEMA.field(name) for name in columns]))
        found.validate(full=True)  # of texts, whether they are any
    except DAMAGED as error:
        if isinstance(file.failed, ObjectNotFoundError):
            return None
        if file.failed is not None:
            raise file.failed from error
        raise UnreadableError(damaged(place, entry.path, error)) from error
    return found


def tally(records: Iterable[pa.RecordBatch]) -> list[Tally]:
    """Count records by reason, the most frequent first."""
    found: dict[str, Tally] = {}
    for batch in records:
        for more in _tallies(batch):
            found[more.reason] = more if more.reason not in found else _together(found[more.reason], more)
    return sorted(found.values(), key=lambda one: (-one.records, one.reason))


def _tallies(records: pa.RecordBatch) -> Iterator[Tally]:
    # In one pass: there may be as many reasons as records, since a path has the keys of maps in it.
    by_reason = pa.Table.from_batches([records]).group_by("reason", use_threads=False)
    for one in by_reason.aggregate([([], "count_all"), (BATCH, "min_max"), ("arrival", "min_max")]).to_pylist():
        batches, arrivals = one[f"{BATCH}_min_max"], one["arrival_min_max"]
        yield Tally(one["reason"], one["count_all"], batches["min"], batches["max"], arrivals["min"], arrivals["max"])


def _together(one: Tally, other: Tally) -> Tally:
    first = [time for time in (one.first_arrival, other.first_arrival) if time is not None]
    last = [time for time in (one.last_arrival, other.last_arrival) if time is not None]
    return Tally(
        one.reason,
        one.records + other.records,
        min(one.first_batch, other.first_batch),
        max(one.last_batch, other.last_batch),
        min(first, default=None),
        max(last, default=None),
    )


def of_reason(reason: str | None, records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Those whose reason begins with a text; None: all."""
    for batch in records:
        yield batch if reason is None else batch.filter(pc.starts_with(batch["reason"], reason))
