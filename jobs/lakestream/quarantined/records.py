"""The records in a writer's quarantine, of committed batches: what, why, and where they came from."""

from __future__ import annotations

import io
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
from lakestream.rejected import DAMAGED, damaged
from lakestream.storage import ObjectNotFoundError, StoreSettings, open_store, translated

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


@dataclass(frozen=True, slots=True)
class Tally:
    """All records that are there for one reason."""

    reason: str
    records: int
    first_batch: int
    last_batch: int
    first_arrival: datetime | None
    last_arrival: datetime | None


def read_records(place: StoreSettings, batches: Iterable[BatchFiles]) -> Iterator[pa.RecordBatch]:
    """The records of committed batches, the oldest batch first; by `SCHEMA`.

    Args:
        place: the writer's quarantine.
        batches: as the log has them.

    Raises:
        UnreadableError: a file is damaged.
        StorageError, StorageUnavailableError: of the store.
    """
    files = [(batch.batch, entry) for batch in batches for entry in batch.rejects]
    gone: list[FileEntry] = []
    for (_, entry), table in answers(lambda one: _read(place, *one), files):
        if table is None:
            gone.append(entry)
        else:
            yield from table.to_batches()
    if gone:
        logger.warning(
            "%d files with %d records are not there any more, and are passed over: %s under %s, for instance",
            *(len(gone), sum(entry.rows for entry in gone), gone[0].path, place.path),
        )


def _read(place: StoreSettings, batch: int, entry: FileEntry) -> pa.Table | None:
    """None: somebody has removed the file."""
    try:
        with translated(f"read {entry.path} under {place.path}"):
            content = obstore.get(open_store(place), entry.path).bytes()
    except ObjectNotFoundError:
        return None
    try:
        found = pq.read_table(io.BytesIO(content))
        found = found.append_column(BATCH, pa.repeat(pa.scalar(batch, pa.int64()), found.num_rows))
        found = found.select(SCHEMA.names).cast(SCHEMA)
        found.validate(full=True)  # of texts, whether they are any
    except DAMAGED as error:
        raise UnreadableError(damaged(place, entry.path, error)) from error
    return found


def tally(records: Iterable[pa.RecordBatch]) -> list[Tally]:
    """Count records by reason, the most frequent first."""
    by_reason: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)
    for batch in records:
        for reason in pc.unique(batch["reason"]).to_pylist():
            by_reason[reason].append(batch.filter(pc.equal(batch["reason"], reason)).drop_columns(["data"]))
    found = [_tally(reason, pa.Table.from_batches(batches)) for reason, batches in by_reason.items()]
    return sorted(found, key=lambda one: (-one.records, one.reason))


def _tally(reason: str, records: pa.Table) -> Tally:
    batches, arrivals = (pc.min_max(records[name]).as_py() for name in (BATCH, "arrival"))
    return Tally(reason, records.num_rows, batches["min"], batches["max"], arrivals["min"], arrivals["max"])


def of_reason(reason: str | None, records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Those whose reason begins with a text; None: all."""
    for batch in records:
        yield batch if reason is None else batch.filter(pc.starts_with(batch["reason"], reason))
