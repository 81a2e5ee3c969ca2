"""From a record to its columns, per core: by one pass of a decoder, or with every digit, as the record needs it.

Times are CPU time of this process, the best of rounds in which the contenders take turns.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from dataclasses import dataclass

import fastavro
import orjson
from pyspark.sql import types as st

from lakestream.avro import AvroTexts, SchemaVersion
from lakestream.model import Filter
from lakestream.spark.events import EventReader
from lakestream.spark.filters import taker
from lakestream_bench._figures import write_figures
from lakestream_bench._options import out_file, whole
from lakestream_bench._telling import Telling

ROUNDS = 15
RECORDS = 2_000
"""Of a batch, all the same."""

_ORDER = {
    "event_id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "order_id": "order-123456",
    "version": 7,
    "op": "u",
    "status": "PAID",
    "customer_id": "customer-998",
    "amount": 123.45,
    "created_at": "2026-01-21T12:00:00.123456Z",
    "updated_at": "2026-01-22T12:00:00.123456Z",
    "note": "x" * 90,
}
_STRING = st.StringType()
_COLUMNS: dict[str, st.DataType] = {
    **dict.fromkeys(_ORDER, _STRING),
    "version": st.LongType(),
    "amount": st.DoubleType(),
    "created_at": st.TimestampType(),
    "updated_at": st.TimestampType(),
}
_PRICE = st.DecimalType(10, 2)
_ITEM: dict[str, st.DataType] = {"sku": _STRING, "price": _PRICE, "qty": st.IntegerType()}


@dataclass(frozen=True)
class Case:
    """A record, by a schema."""

    name: str
    columns: dict[str, st.DataType]
    more: dict[str, object]
    """Beside the fields of an order."""
    filter: Filter | None = None
    rescues: bool = True
    """Whether what the schema lacks is asked for."""

    @property
    def data(self) -> bytes:
        return orjson.dumps({**_ORDER, **self.more})

    @property
    def read(self) -> Callable[[list[bytes]], object]:
        reader = EventReader(_struct(self.columns), rescues=self.rescues)
        if self.filter is None:
            return reader.read
        takes = taker([self.filter])
        return lambda datas: reader.read([data for data in datas if takes(data)])


def _struct(columns: dict[str, st.DataType]) -> st.StructType:
    return st.StructType([st.StructField(name, type) for name, type in columns.items()])


def _of_status(status: str) -> Filter:
    return Filter(("status",), frozenset({status}))


@dataclass(frozen=True)
class AvroCase:
    """The order with its two times as Avro, in a frame of the Glue Schema Registry."""

    name: str

    @property
    def data(self) -> bytes:
        payload = io.BytesIO()
        micros = {"created_at": 1_769_860_800_123_456, "updated_at": 1_769_860_800_123_456}
        fastavro.schemaless_writer(payload, fastavro.parse_schema(_AVRO), {**_ORDER, **micros})
        return b"\x03\x00" + bytes(16) + payload.getvalue()

    @property
    def read(self) -> Callable[[list[bytes]], object]:
        reader = EventReader(_struct(_COLUMNS))
        text_of = AvroTexts(lambda _: SchemaVersion("AVRO", orjson.dumps(_AVRO).decode())).text_of
        return lambda datas: reader.read([text for text, _ in map(text_of, datas)])


_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": name, "type": {float: "double", int: "long"}.get(type(value), "string")}
        if not name.endswith("_at")
        else {"name": name, "type": _TIME}
        for name, value in _ORDER.items()
    ],
}

CASES = (
    Case("no times", {**_COLUMNS, "created_at": _STRING, "updated_at": _STRING}, {}),
    Case("two times", _COLUMNS, {}),
    Case("and a decimal", {**_COLUMNS, "amount": _PRICE}, {}),
    Case(
        "and structs in an array",
        {**_COLUMNS, "items": st.ArrayType(_struct(_ITEM))},
        {"items": [{"sku": "a", "price": 1.25, "qty": 2}] * 3},
    ),
    Case("and a map", {**_COLUMNS, "tags": st.MapType(_STRING, _STRING)}, {"tags": {"a": "b", "c": "d", "e": "f"}}),
    Case("five columns of ten", dict(list(_COLUMNS.items())[:5]), {}),
    Case("and the rest not asked for", dict(list(_COLUMNS.items())[:5]), {}, rescues=False),
    Case("a struct with more", {**_COLUMNS, "item": _struct(_ITEM)}, {"item": {"sku": "a", "unit": "kg"}}),
    Case("a number in a string", {**_COLUMNS, "amount": _STRING}, {}),
    Case("an object in a string", {**_COLUMNS, "item": _STRING}, {"item": {"sku": "a", "price": 1.25, "qty": 2}}),
    Case("a decimal that is a text", {**_COLUMNS, "amount": _PRICE}, {"amount": "123.45"}),
    Case("a text in an integer", _COLUMNS, {"version": "7"}),
    Case("two times, by a filter", _COLUMNS, {}, _of_status("PAID")),
    Case("left out by a filter", _COLUMNS, {}, _of_status("NEW")),
    AvroCase("two times, in Avro"),
)


@dataclass(frozen=True)
class Figure:
    """What one kind of record takes."""

    case: str
    bytes: int
    """Of the record."""
    microseconds: float


def run(rounds: int) -> list[Figure]:
    """All cases, taking turns."""
    cases = [(case.name, case.read, [case.data] * RECORDS) for case in CASES]
    best = {case.name: float("inf") for case in CASES}
    with Telling(1).measuring("records"):
        for _ in range(rounds):
            for name, read, datas in cases:
                began = time.process_time()
                read(datas)
                best[name] = min(best[name], (time.process_time() - began) / RECORDS)
    return [Figure(name, len(datas[0]), best[name] * 1e6) for name, _, datas in cases]


def main() -> None:
    """Measure, print a table, write JSON."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--out", type=out_file, help="write the figures there as JSON")
    arguments.add_argument("--rounds", type=whole(), default=ROUNDS)
    chosen = arguments.parse_args()
    figures = run(chosen.rounds)
    for figure in figures:
        print(f"{figure.case:26} {figure.bytes:4} bytes {figure.microseconds:6.2f} µs")
    if chosen.out:
        write_figures(chosen.out, "events", figures)


if __name__ == "__main__":
    main()
