"""Appends to a ledger file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
from isal.isal_zlib import crc32

from lakestream_loadgen.errors import LedgerError
from lakestream_loadgen.ledger import SUFFIX
from lakestream_loadgen.ledger.format import (
    END_SCHEMA,
    SENT_SCHEMA,
    SETTLED_SCHEMA,
    FrameKind,
    LedgerHeader,
    encode_frame,
    encode_header,
)
from lakestream_loadgen.ledger.outcomes import Settled
from lakestream_loadgen.records import Record


class LedgerWriter:
    """One worker's ledger file, ``<folder>/<prefix>.ledger``; must not exist yet.

    Each frame is one unbuffered write, so it outlives the process as soon as the call returns; it is synced
    to the disk only by ``close``, so a crash of the machine may lose the latest.
    """

    def __init__(self, folder: Path, *, stream: str, prefix: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{prefix}{SUFFIX}"
        try:
            self._file = self.path.open("xb", buffering=0)
        except FileExistsError as error:
            raise LedgerError(f"{self.path} exists: two workers, or two runs, with the prefix {prefix!r}") from error
        self._rows = self._settled = 0
        try:
            self._append(encode_header(LedgerHeader(stream, prefix)))
        except BaseException:
            self._file.close()
            self.path.unlink()
            raise

    def sent(self, records: Sequence[Record]) -> int:
        """Note that ``records`` are about to be sent; returns the row number of the first."""
        first = self._rows
        event_ids, data, malformed = (list(map(itemgetter(column), records)) for column in (0, 2, 3))
        # isal's CRC-32 is zlib's, at 95 instead of 230 ns for an event.
        checksums = np.fromiter(map(crc32, data), np.uint32, len(data))
        batch = pa.RecordBatch.from_arrays(
            [pa.array(event_ids, pa.string()), pa.array(checksums), pa.array(malformed, pa.bool_())],
            schema=SENT_SCHEMA,
        )
        self._append(encode_frame(FrameKind.SENT, batch))
        self._rows += len(records)
        return first

    def settled(self, settled: Settled) -> None:
        """Note the outcome of records sent before."""
        count = len(settled.rows)
        nothing = pa.nulls(count, pa.string())
        arrays = [
            pa.array(settled.rows, pa.uint64()),
            pa.repeat(pa.scalar(int(settled.outcome), pa.uint8()), count),
            pa.array(settled.shard_ids, pa.string()) if settled.shard_ids else nothing,
            pa.array(settled.sequence_numbers, pa.string()) if settled.sequence_numbers else nothing,
            pa.array(settled.attempts, pa.int32()),
        ]
        self._append(encode_frame(FrameKind.SETTLED, pa.RecordBatch.from_arrays(arrays, schema=SETTLED_SCHEMA)))
        self._settled += count

    def close(self) -> None:
        """Mark the end, by which a reader knows that it has all of it. Twice is once; one that failed has no end."""
        if self._file.closed:
            return
        counts = [pa.array([count], pa.uint64()) for count in (self._rows, self._settled)]
        try:
            self._append(encode_frame(FrameKind.END, pa.RecordBatch.from_arrays(counts, schema=END_SCHEMA)))
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def _append(self, data: bytes) -> None:
        if self._file.closed:
            raise LedgerError(f"{self.path}: nothing can be written any more")
        try:
            written = self._file.write(data)
        except OSError:
            # What could not be noted is missing: no end may say that all is there.
            self._file.close()
            raise
        if written != len(data):
            # A full disk. Closed, for a frame behind half a frame would damage the file once there is room again.
            self._file.close()
            raise LedgerError(f"{self.path}: only {written} of {len(data)} bytes could be written")
