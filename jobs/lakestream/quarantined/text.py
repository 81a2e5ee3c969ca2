"""Unusable records for people. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from lakestream.quarantined.records import Tally
from lakestream.query.history import show
from lakestream.texts import printable

_NAMED = 5


def as_text(found: Sequence[Tally]) -> str:
    """A line for each reason."""
    if not found:
        return "the quarantine is empty\n"
    lines = [f"{'records':>10}  {'batches':<13}  {'arrived':<49}  reason"]
    for one in found:
        batches = f"{one.first_batch}" if one.first_batch == one.last_batch else f"{one.first_batch}–{one.last_batch}"
        arrived = "·"
        if one.first_arrival is not None and one.last_arrival is not None:
            arrived = " – ".join(show(time.replace(microsecond=0)) for time in (one.first_arrival, one.last_arrival))
        lines.append(f"{one.records:>10,}  {batches:<13}  {arrived:<49}  {printable(one.reason)}")
    return "".join(f"{line}\n" for line in lines)


def as_list(found: Sequence[Tally]) -> str:
    """The reasons, the most frequent first."""
    more = ", …" if len(found) > _NAMED else ""
    return ", ".join(repr(one.reason) for one in found[:_NAMED]) + more


def readable(records: pa.RecordBatchReader, text_of: Callable[[bytes], bytes]) -> pa.RecordBatchReader:
    """With data as text, without what wraps it; bytes that are no UTF-8 are shown as `\\x..`."""
    position = records.schema.get_field_index("data")
    schema = records.schema.set(position, pa.field("data", pa.string()))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in records:
            texts = [
                None if data is None else text_of(data).decode(errors="backslashreplace")
                for data in batch["data"].to_pylist()
            ]
            yield batch.set_column(position, schema.field(position), pa.array(texts, pa.string()))

    return pa.RecordBatchReader.from_batches(schema, batches())
