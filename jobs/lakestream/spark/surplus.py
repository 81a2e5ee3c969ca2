"""Records that are plain but for fields that the schema lacks: read by decoders in C, some more passes of them.

Their values are read as those of plain records (`plain`), and the other fields as the JSON that they came with: in less
than half of the time that `exact` takes (docs/records.md).
"""

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw
from pyspark.sql import types as st

from lakestream.spark.digits import compact
from lakestream.spark.lacking import Access, lacking_of
from lakestream.spark.plain import plain_decoder

_FIELDS, _ITEMS = msgspec.json.Decoder(dict[str, Raw] | None), msgspec.json.Decoder(list[Raw] | None)
_AS_THEY_ARE = Access(_FIELDS.decode, _ITEMS.decode, lambda fields: fields)
_COMPACT = Access(_FIELDS.decode, _ITEMS.decode, lambda fields: {name: compact(fields[name]) for name in fields})

# Of bytes, numbers are looked for ten times as fast as bytes.
_BACKSLASH, _BRACKET, _BRACE = b"\\[{"


SurplusDecoder: TypeAlias = Callable[[bytes], tuple[tuple[Any, ...], str | None]]
"""From a record to what `exact_reader` would read of it, as a pair."""


def surplus_decoder(schema: st.StructType, loose: Collection[int] = ()) -> SurplusDecoder:
    """A function that reads a record.

    It raises one of `NotPlain` for records that are not plain, whatever else they have.

    Args:
        schema: of the records.
        loose: as `plain_decoder` has it.
    """
    values_of = plain_decoder(schema, closed=False, loose=loose)
    of_flat, of_any = lacking_of(schema, _AS_THEY_ARE), lacking_of(schema, _COMPACT)

    def read(data: bytes) -> tuple[tuple[Any, ...], str | None]:
        values = values_of(data)
        is_flat = _BACKSLASH not in data and _BRACKET not in data and data.rfind(_BRACE) <= 0
        rest = of_flat(data) if is_flat else of_any(data)
        return values, None if rest is None else msgspec.json.encode(rest).decode()

    return read
