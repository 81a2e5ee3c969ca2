"""Batches of raw records as the reader gives them."""

from __future__ import annotations

import pyarrow as pa

from lakestream.kinesis.batches import SCHEMA


def raw(*datas: bytes, sub: int = 0) -> pa.RecordBatch:
    """Records of one shard with these data, numbered from 0.

    Args:
        datas: a record each.
        sub: the number of each within its record.
    """
    rows = [
        {"data": data, "shard_id": "a", "sequence_number": str(at), "sub_sequence": sub}
        for at, data in enumerate(datas)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)
