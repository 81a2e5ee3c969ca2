"""Streams of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def first(limit: int | None, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The first so many rows, and no more batches than they are in; None: all."""
    if limit is None:
        return rows
    return pa.RecordBatchReader.from_batches(rows.schema, _first(limit, rows))


def _first(limit: int, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while limit > 0 and (batch := next(rows, None)) is not None:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
