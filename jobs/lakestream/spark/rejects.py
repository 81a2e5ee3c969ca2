"""Records of the quarantine as the stream had them. Runs on executors."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakestream.errors import PermanentError
from lakestream.kinesis.batches import REASON, SCHEMA
from lakestream.model import FileEntry
from lakestream.rejected import DAMAGED, damaged
from lakestream.storage import ObjectNotFoundError, StoreSettings, open_store, translated

logger = logging.getLogger(__name__)

_RECORDS = 10_000
"""Of a batch, as from Kinesis at most."""


def read_rejects(place: StoreSettings, files: Iterable[FileEntry]) -> Iterator[pa.RecordBatch]:
    """The records of files, in their order, by the schema of what comes from Kinesis; each batch is of one shard.

    What is no event has its reason with it, for which it stays in quarantine. A file that somebody has removed is
    passed over.

    Raises:
        StorageError, StorageUnavailableError: of the store.
        PermanentError: a file is damaged.
    """
    store = open_store(place)
    for entry in files:
        try:
            with translated(f"read {entry.path} under {place.path}"):
                content = obstore.get(store, entry.path).bytes()
        except ObjectNotFoundError:
            logger.warning("%s under %s was removed: its %d records are not read", entry.path, place.path, entry.rows)
            continue
        try:
            yield from _by_shard(_table(bytes(content)))
        except DAMAGED as error:
            raise PermanentError(damaged(place, entry.path, error)) from error


def _table(content: bytes) -> pa.Table:
    found = pq.ParquetFile(pa.BufferReader(content)).read()
    return found.select(SCHEMA.names).cast(SCHEMA).append_column(REASON, found["reason"].cast(pa.string()))


def _by_shard(records: pa.Table) -> Iterator[pa.RecordBatch]:
    is_event = pc.greater_equal(records["sub_sequence"], 0)
    for shard in sorted(pc.unique(records["shard_id"]).to_pylist()):
        of_shard = pc.equal(records["shard_id"], shard)
        events = records.filter(pc.and_(of_shard, is_event)).drop_columns([REASON])
        others = records.filter(pc.and_(of_shard, pc.invert(is_event)))
        for part in (events, others):
            yield from part.combine_chunks().to_batches(_RECORDS)
