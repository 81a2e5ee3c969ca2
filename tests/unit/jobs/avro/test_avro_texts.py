"""Records in frames of the Glue Schema Registry as JSON: by the schema of their version, or with a reason."""

from __future__ import annotations

import json
from uuid import UUID

import pyarrow as pa
import pytest

from lakestream.avro import AvroTexts, SchemaVersion, in_json
from lakestream.errors import RegistryUnavailableError
from lakestream.kinesis.batches import REASON
from lakestream.kinesis.texts import MOST, texts
from lakestream.testing.avro import framed, long, record, text
from lakestream.testing.raw import raw

ORDER, LATER, OF_JSON, OF_PROTOBUF, RECURSIVE, LONG, LACKING = map(UUID, (f"{n:032x}" for n in range(1, 8)))
SYMBOL = "S" * 100_000
REGISTRY = {
    ORDER: SchemaVersion("AVRO", json.dumps(record("Order", {"id": "string"}))),
    LATER: SchemaVersion("AVRO", json.dumps(record("Order", {"id": "string", "n": ["null", "long"]}))),
    OF_JSON: SchemaVersion("JSON", '{"type": "object"}'),
    OF_PROTOBUF: SchemaVersion("PROTOBUF", 'syntax = "proto3";'),
    RECURSIVE: SchemaVersion("AVRO", json.dumps(record("R", {"next": ["null", "R"]}))),
    LONG: SchemaVersion(
        "AVRO", json.dumps({"type": "array", "items": {"type": "enum", "name": "E", "symbols": [SYMBOL]}})
    ),
}
A = framed(ORDER, text("a"))


class Registry:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.has = dict(REGISTRY)
        self.asked: list[UUID] = []
        self.now = 0.0
        self.texts = AvroTexts(self.version, lambda: self.now)

    def version(self, version: UUID) -> SchemaVersion | None:
        self.asked.append(version)
        return self.has.get(version)


@pytest.fixture(name="registry")
def _registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("compressed", [False, True])
def test_records_are_read_by_the_schema_of_their_version(registry: Registry, compressed: bool) -> None:
    datas = [
        framed(ORDER, text("a"), compressed=compressed),
        framed(LATER, text("b") + long(1) + long(-7), compressed=compressed),
        framed(OF_JSON, b'{"id": 1.10}', compressed=compressed),
    ]
    (found,) = in_json([raw(*datas)], registry.texts)
    assert texts(found) == [b'{"id":"a"}', b'{"id":"b","n":-7}', b'{"id": 1.10}']
    assert found.column("data").to_pylist() == datas
    assert REASON not in found.schema.names


def test_a_version_that_was_lacking_is_asked_for_at_once_for_a_replay(registry: Registry) -> None:
    batch = raw(framed(LACKING, text("a")))
    assert [REASON in found.schema.names for found in in_json([batch], registry.texts)] == [True]
    registry.has[LACKING] = REGISTRY[ORDER]
    assert [REASON in found.schema.names for found in in_json([batch], registry.texts)] == [True], "once a minute"
    registry.texts.ask_again()
    assert [*map(texts, in_json([batch], registry.texts))] == [[b'{"id":"a"}']]


def test_a_schema_is_asked_for_once(registry: Registry) -> None:
    for _ in range(2):
        [*in_json([raw(A, A), raw(A, framed(RECURSIVE, b"\x00"), framed(RECURSIVE, b"\x00"))], registry.texts)]
    assert registry.asked == [ORDER, RECURSIVE]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no frame of the Glue Schema Registry"),
        (b'{"id":"a"}', "no frame of the Glue Schema Registry"),
        (b"\x00\x00\x00\x00\x01" + text("a"), "no frame of the Glue Schema Registry"),
        (A[:17], "a frame of the Glue Schema Registry that is damaged, or more than 16 MiB in it"),
        (b"\x03\x04" + A[2:], "a frame of the Glue Schema Registry that is damaged, or more than 16 MiB in it"),
        (b"\x03\x05" + A[2:], "a frame of the Glue Schema Registry that is damaged, or more than 16 MiB in it"),
        (framed(ORDER, bytes(MOST + 1), compressed=True), "a frame of the Glue Schema Registry that is damaged"),
        (framed(ORDER, text("a"), compressed=True) + b"?", "a frame of the Glue Schema Registry that is damaged"),
        (A + b"?", f"Avro: not what its schema says ({ORDER})"),
        (framed(LACKING, b""), "of a schema that the Glue Schema Registry does not have"),
        (framed(OF_PROTOBUF, b""), f"Protobuf, which is not read: {OF_PROTOBUF}"),
        (framed(RECURSIVE, b"\x00"), f"of a schema that is recursive: R is part of itself: {RECURSIVE}"),
        (framed(LONG, long(200) + long(0) * 200 + long(0)), "more than 16 MiB of text"),
    ],
)
def test_what_is_not_read_has_a_reason(registry: Registry, data: bytes, reason: str) -> None:
    """And nothing else; what is beside it is read."""
    (found,) = in_json([raw(A, data)], registry.texts)
    assert texts(found) == [b'{"id":"a"}', b""]
    none, told = found.column(REASON).to_pylist()
    assert none is None
    assert told.startswith(reason)
    assert found.column("data").to_pylist() == [A, data]


def test_what_the_registry_lacked_is_asked_for_again_after_a_while(registry: Registry) -> None:
    data = framed(LACKING, text("a"))
    assert registry.texts.text_of(data)[1] is not None
    registry.has[LACKING] = REGISTRY[ORDER]
    registry.now = 59.0
    assert registry.texts.text_of(data)[1] is not None
    registry.now = 60.0
    assert registry.texts.text_of(data) == (b'{"id":"a"}', None)
    assert registry.asked == [LACKING] * 2


def test_versions_that_somebody_makes_up_take_no_memory(registry: Registry) -> None:
    for number in range(25_000):
        registry.texts.text_of(framed(UUID(int=2**127 + number), b""))
    assert len(registry.texts._lacking) <= 10_000


def test_what_asking_raises_is_raised() -> None:
    """The batch is tried again: no record goes to quarantine because somebody does not answer."""

    def away(_: UUID) -> SchemaVersion | None:
        raise RegistryUnavailableError("no answer")

    with pytest.raises(RegistryUnavailableError):
        [*in_json([raw(A)], AvroTexts(away))]


def test_marks_of_what_was_not_read_stay_as_they_are(registry: Registry) -> None:
    marks = raw(b"").append_column(REASON, pa.array(["file not read: it is gone"]))
    assert [*in_json([marks], registry.texts)] == [marks]


def test_batches_are_parted_where_their_texts_are_too_many(registry: Registry) -> None:
    many = framed(LONG, long(160) + long(0) * 160 + long(0))
    found = [*in_json([raw(many, A, many, b"", many)], registry.texts)]
    assert [part.column("sequence_number").to_pylist() for part in found] == [["0", "1", "2", "3"], ["4"]]
    assert [REASON in part.schema.names for part in found] == [True, False]
