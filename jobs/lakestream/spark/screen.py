"""The first look at raw records, in the Arrow batches they are fetched in: which can be parsed, and as what.

Spark's `from_json` is lenient where an alteration or a loss would go unseen: it replaces bytes that are not UTF-8,
stops reading behind the first value (`{"a":1}{"a":2}`), drops fields that are not in the schema, prints numbers anew
(`1.10` is `1.1`), rounds decimals, lets times and TINYINT wrap, gives a time without a date that of today, and takes
eight minutes for a DECIMAL of `1e100000000`. So it is given only what it reads exactly: most records as they are
(`plain`), the others written anew (`exact`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType

from lakestream.spark.exact import RecordError, exact_reader
from lakestream.spark.plain import NotPlain, plain_decoder


class Look(NamedTuple):
    """What was seen of a record. All null: it can be parsed as it is."""

    text: str | None = None
    """JSON to be parsed in its place."""
    rescued: str | None = None
    """JSON of what the schema lacks."""
    reason: str | None = None
    """Why it cannot be used."""


PLAIN = Look()

SCREENED = ("_text", "_rescued", "_reason")
"""The columns that `screen` adds: the fields of a `Look`."""


def screen(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Add the columns `SCREENED` to batches of raw records.

    Field names are compared exactly, with case.
    """
    look_at = looker(schema)
    for batch in batches:
        looks = [look_at(data) for data in batch.column("data").to_pylist()]
        added = [pa.array([look[position] for look in looks], pa.string()) for position in range(len(SCREENED))]
        yield pa.RecordBatch.from_arrays([*batch.columns, *added], [*batch.schema.names, *SCREENED])


def looker(schema: StructType) -> Callable[[bytes], Look]:
    """A function that looks at a record of the schema.

    Raises:
        TypeError: the schema has a type that JSON is not read into.
    """
    read = exact_reader(schema)
    decode_plain = plain_decoder(schema)

    def look_at(data: bytes) -> Look:
        try:
            decode_plain(data)
        except NotPlain:
            try:
                found = read(data)
            except RecordError as error:
                return Look(reason=str(error))
            return Look(found.text, found.lacking)
        return PLAIN

    return look_at
