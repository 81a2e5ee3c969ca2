"""Files of the quarantine, as whoever reads them has to: in the driver, on executors, in commands without Spark."""

from __future__ import annotations

import obstore
import pyarrow as pa
import pyarrow.parquet as pq

from lakestream.model import FileEntry
from lakestream.storage import LakeStore, StoreSettings, translated

UNREAD, OF_TABLE = -1, -2
"""In place of a sub-sequence: what is there is no event, and stays with its reason whatever is replayed. Of a file that
a backfill cannot read, the place from which on; or a row of a table."""

DAMAGED = (pa.ArrowException, OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What Arrow raises for a damaged file, and its content behind that: its own errors are the least of it. What a store
raises is among it as well, so that a file is got before it is looked into."""

MARK = b"\xef\xbb\xbf"
"""What Windows begins a file of UTF-8 with, before its first line."""

_FOOTER = 64 * 1024
"""Bytes at the end of a file that hold the statistics of its columns."""


def footer_of(store: LakeStore, place: StoreSettings, entry: FileEntry) -> pq.FileMetaData:
    """What the end of a file says of its columns: one small request, and none for the records.

    Where that contradicts the schema behind it, Arrow ends the process that asks for the column: nothing else tells
    before, but to read all of the file.

    Args:
        store: that at the place.
        place: the writer's quarantine, for messages.
        entry: the file.

    Raises:
        ObjectNotFoundError: somebody has removed it.
        StorageError, StorageUnavailableError: of the store.
        DAMAGED: it is.
    """
    with translated(f"read the end of {entry.path} under {place.path}"):
        end = obstore.get_range(store, entry.path, start=max(entry.bytes - _FOOTER, 0), end=entry.bytes)
    return pq.read_metadata(pa.BufferReader(bytes(end)))


def damaged(place: StoreSettings, path: str, error: Exception) -> str:
    """What is wrong with a file that cannot be read as one of the quarantine, and what to do."""
    return (
        f"{path} under {place.path} is no file of the quarantine any more: {error}. Put back what was there, "
        "or remove it to go on without its records"
    )
