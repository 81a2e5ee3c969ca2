"""Where records go that cannot be used: Parquet files with their raw bytes and the reason, beside the log.

spark.read.parquet("<checkpoint>/<writer>/quarantine").groupBy("reason").count()
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from lakestream.errors import LakeStreamError, PermanentError
from lakestream.model import FileEntry
from lakestream.rejected import DAMAGED, damaged, footer_of
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.objects import discard_unfinished, object_name, objects_of, remove, write_objects
from lakestream.storage import StoreSettings, open_store, translated

if TYPE_CHECKING:
    from lakestream.sinks.objects import Content

logger = logging.getLogger(__name__)

COLUMNS = ("data", "partition_key", "sequence_number", "sub_sequence", "shard_id", "arrival", "reason")


class Quarantine:
    """Keeps the rejected records of a writer."""

    def __init__(self, store: StoreSettings) -> None:
        self.store = store
        """Where it is."""
        self.reason = ""
        """Why one of the records is there that were written last; empty: there was none, or it cannot be told."""

    def write(self, ref: BatchRef, rejected: DataFrame, *, replay: bool) -> tuple[FileEntry, ...]:
        """Write the batch's rejected records, in the place of those that an earlier attempt wrote.

        Args:
            ref: the batch.
            rejected: raw columns and `_reason`.
            replay: an earlier attempt may have rejected more, under another schema.
        """
        rows = rejected.withColumn("reason", sf.col("_reason")).select(*COLUMNS)
        files = write_objects(rows, self.store, partial(_task_files, ref))
        if replay:
            discard_unfinished(self.store, ref)
            remove(self.store, set(objects_of(self.store, ref)) - {entry.path for entry in files})
        if files:
            self.reason = self._reason_in(min(files, key=lambda entry: entry.bytes))
        return files

    def _reason_in(self, entry: FileEntry) -> str:
        """A reason of an object, from the statistics at its end."""
        try:
            footer = footer_of(open_store(self.store), self.store, entry)
            column = footer.row_group(0).column(COLUMNS.index("reason"))
            values = column.statistics
            return str(values.max) if values and values.has_min_max else ""
        except (LakeStreamError, *DAMAGED) as error:
            # It is for people alone: the batch must not fail for it.
            logger.warning("cannot tell why records of %s are in quarantine: %s", entry.path, error)
            return ""

    def find(self, ref: BatchRef) -> tuple[FileEntry, ...]:
        """What has been written for a batch."""
        store, found = open_store(self.store), []
        for path in objects_of(self.store, ref):
            with translated(f"read {path} under {self.store.path}"):
                content = obstore.get(store, path).bytes()
            try:
                rows = pq.ParquetFile(pa.BufferReader(bytes(content))).metadata.num_rows
            except DAMAGED as error:
                raise PermanentError(damaged(self.store, path, error)) from error
            found.append(FileEntry(path, rows, len(content), ""))
        return tuple(found)


def _task_files(ref: BatchRef, task: int, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[FileEntry, Content]]:
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        return
    table = pa.Table.from_batches(filled)
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    content = memoryview(buffer.getvalue()).cast("B")
    yield FileEntry(object_name(ref, task, "parquet"), table.num_rows, len(content), ""), content
