"""Reads the ledgers of a run."""

from __future__ import annotations

import logging
import posixpath
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakestream_loadgen.errors import LedgerError
from lakestream_loadgen.ledger import SUFFIX
from lakestream_loadgen.ledger.format import (
    LEDGER_SCHEMA,
    SENT_SCHEMA,
    SETTLED_SCHEMA,
    FrameKind,
    decode_frames,
    decode_header,
    ends_in_header,
)
from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.ledger.shipping import join, parts_of
from lakestream_loadgen.storage import Folder

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenLedger:
    """A ledger without its end: its worker was killed, or the last of it is lost.

    Which of the two it does not show. If some is lost, records were sent that it does not name, and some may have been
    acknowledged whose outcome it does not have.
    """

    name: str
    prefix: str
    rows: range
    """Its entries, in the table of all."""


@dataclass(frozen=True)
class Ledgers:
    """The ledgers of a run."""

    entries: pa.Table
    """As LEDGER_SCHEMA."""
    open: tuple[OpenLedger, ...]
    streams: frozenset[str]
    """What they are of."""


def read_ledger(location: str, *, stream: str | None = None) -> pa.Table:
    """All entries of the ledgers under a location; see read_ledgers, which also says whether that is all of them."""
    return read_ledgers(location, stream=stream).entries


def read_ledgers(location: str, *, stream: str | None = None) -> Ledgers:
    """The ledgers under a folder or ``s3://`` prefix, whole files and shipped ones.

    ``stream`` restricts them to the records of one stream.

    Raises:
        LedgerError: there is no ledger, or one is damaged.
    """
    folder = Folder(location)
    sizes = folder.sizes()
    shipped = parts_of(sizes)
    names = sorted({name for name in sizes if name.endswith(SUFFIX)} | shipped.keys())
    if not names:
        raise LedgerError(f"no *{SUFFIX} file under {location}")
    tables = [LEDGER_SCHEMA.empty_table()]
    opened: list[OpenLedger] = []
    streams: set[str] = set()
    rows = 0
    for name in names:
        data = join(folder, name, shipped[name]) if name in shipped else folder.read(name)
        if ends_in_header(data):
            logger.warning("%s ends within its header, after %d bytes: it has no entries", name, len(data))
            opened.append(OpenLedger(name, posixpath.basename(name).removesuffix(SUFFIX), range(rows, rows)))
            continue
        header, start = decode_header(data, name)
        if stream is None or header.stream == stream:
            table, ended = decode_ledger(data, start, name)
            if not ended:
                opened.append(OpenLedger(name, header.prefix, range(rows, rows + len(table))))
            streams.add(header.stream)
            tables.append(table)
            rows += len(table)
    if len(tables) == 1 and stream is not None:
        raise LedgerError(f"no ledger of stream {stream!r} under {location}")
    return Ledgers(pa.concat_tables(tables), tuple(opened), frozenset(streams))


def decode_ledger(data: bytes, start: int, name: str) -> tuple[pa.Table, bool]:
    """Join the SENT and SETTLED frames of one file; and whether its end is there."""
    frames = list(decode_frames(data, start, name))
    sent = pa.Table.from_batches([batch for kind, batch in frames if kind is FrameKind.SENT], SENT_SCHEMA)
    settled = pa.Table.from_batches([batch for kind, batch in frames if kind is FrameKind.SETTLED], SETTLED_SCHEMA)
    rows = settled["row"].to_numpy().astype(np.int64)
    if len(rows) and (rows.max() >= len(sent) or len(np.unique(rows)) != len(rows)):
        raise LedgerError(f"{name}: an outcome refers to a record that was never sent, or is given twice")
    ended = bool(frames) and frames[-1][0] is FrameKind.END
    if ended and frames[-1][1].to_pylist() != [{"rows": len(sent), "settled": len(rows)}]:
        raise LedgerError(f"{name}: its end tells of other records than it has")
    # Where the outcome of each sent row stands among the settled ones; null for the unsettled.
    where = np.full(len(sent), -1, dtype=np.int64)
    where[rows] = np.arange(len(rows))
    unsettled = int((where < 0).sum())
    if unsettled:
        logger.info("%s: %d records were sent whose outcome is not known", name, unsettled)
    index = pa.array(where, mask=where < 0)
    outcome = pc.fill_null(settled["outcome"].take(index), pa.scalar(Outcome.UNKNOWN, pa.uint8()))
    attempts = pc.fill_null(settled["attempts"].take(index), pa.scalar(-1, pa.int32()))
    columns = [
        *sent.columns,
        outcome,
        settled["shard_id"].take(index),
        settled["sequence_number"].take(index),
        attempts,
    ]
    return pa.Table.from_arrays(columns, schema=LEDGER_SCHEMA), ended
