"""Records of a shard as Arrow. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakestream.kinesis.kpl import MAGIC, deaggregate, placed
from lakestream.kinesis.port import RecordPage
from lakestream.model import HashKeys

SCHEMA = pa.schema(
    [
        pa.field("data", pa.binary(), nullable=False),
        pa.field("partition_key", pa.string()),
        pa.field("sequence_number", pa.string(), nullable=False),
        pa.field("sub_sequence", pa.int64(), nullable=False),
        pa.field("shard_id", pa.string(), nullable=False),
        pa.field("arrival", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""What the reader gives, one row per user record:

data             the bytes that the producer put
partition_key    of the user record; null if its producer gave none
sequence_number  of the Kinesis record, decimal; order it as a number, not as text
sub_sequence     0, or the user record's index within a KPL aggregate
shard_id         of the shard that it was read from
arrival          approximate arrival time of the Kinesis record, to the millisecond
"""


def record_batch(
    shard_id: str, page: RecordPage, end: int, hash_keys: HashKeys | None = None
) -> tuple[pa.RecordBatch, int]:
    """The first `end` records of a page, KPL aggregates unpacked, and how many user records were left out as misplaced.

    Args:
        hash_keys: of the shard; a user record of an aggregate that does not belong there is left out. None: all stay.
    """
    data = page.data[:end]
    if any(value.startswith(MAGIC) for value in data):
        return _unpack(shard_id, page, end, hash_keys)
    return _batch(shard_id, data, page.partition_keys[:end], page.sequences[:end], [0] * end, page.arrivals[:end]), 0


def _unpack(shard_id: str, page: RecordPage, end: int, hash_keys: HashKeys | None) -> tuple[pa.RecordBatch, int]:
    data: list[bytes] = []
    keys: list[str | None] = []
    sequences: list[str] = []
    subs: list[int] = []
    arrivals: list[int] = []
    misplaced = 0
    for index in range(end):
        records = deaggregate(page.data[index])
        if records is None:
            data.append(page.data[index])
            keys.append(page.partition_keys[index])
            kept: Sequence[int] = (0,)
        else:
            kept = placed(records, hash_keys)
            data.extend(records[sub].data for sub in kept)
            keys.extend(records[sub].partition_key for sub in kept)
            misplaced += len(records) - len(kept)
        subs.extend(kept)
        sequences.extend([page.sequences[index]] * len(kept))
        arrivals.extend([page.arrivals[index]] * len(kept))
    return _batch(shard_id, data, keys, sequences, subs, arrivals), misplaced


def _batch(
    shard_id: str, data: object, keys: object, sequences: object, subs: object, arrivals: object
) -> pa.RecordBatch:
    columns = [
        pa.array(data, pa.binary()),
        pa.array(keys, pa.string()),
        pa.array(sequences, pa.string()),
        pa.array(subs, pa.int64()),
    ]
    shard = pa.repeat(pa.scalar(shard_id, pa.string()), len(columns[0]))
    return pa.RecordBatch.from_arrays(
        [*columns, shard, pa.array(arrivals, pa.timestamp("us", tz="UTC"))], schema=SCHEMA
    )
