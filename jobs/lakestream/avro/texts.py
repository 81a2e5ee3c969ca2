"""Records in Avro as the JSON of their values, batch by batch. Runs on executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias
from uuid import UUID

import pyarrow as pa

from lakestream.avro.registry import GlueRegistry, RegistrySettings, SchemaVersion
from lakestream.avro.schema import AvroSchema, SchemaError, ValueUnreadableError
from lakestream.kinesis.batches import REASON
from lakestream.kinesis.frames import VERSION, Frame, frame_of
from lakestream.kinesis.texts import MOST, MOST_MEBIBYTES, with_texts

logger = logging.getLogger(__name__)

Ask: TypeAlias = Callable[[UUID], SchemaVersion | None]
"""What the registry has of a version."""

NOT_FRAMED = "no frame of the Glue Schema Registry"
DAMAGED = f"a frame of the Glue Schema Registry that is damaged, or more than {MOST_MEBIBYTES} MiB in it"
LACKING = "of a schema that the Glue Schema Registry does not have"
"""Which one, the log tells: whoever writes to the stream can make up any number, and reasons are counted."""
TOO_MUCH = f"more than {MOST_MEBIBYTES} MiB of text"

_AGAIN = 60.0
"""Seconds after which what the registry lacked is asked for once more: somebody may have mended it."""
_MOST_LACKING = 10_000
"""Versions that are known to be lacking: whoever writes to the stream can make them up."""


class AvroTexts:
    """The texts of records, by schemas that are asked for once."""

    def __init__(self, ask: Ask, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._known: dict[bytes, AvroSchema | str | None] = {}
        self._lacking: dict[bytes, float] = {}

    def ask_again(self) -> None:
        """For versions that were lacking: who has their records read once more has registered them."""
        self._lacking.clear()

    def text_of(self, data: bytes) -> tuple[bytes, str | None]:
        """The JSON of a record; or nothing, and why it cannot be used.

        Raises what asking the registry raises.
        """
        if not data.startswith(VERSION):
            return b"", NOT_FRAMED
        if (frame := frame_of(data, MOST)) is None:
            return b"", DAMAGED
        try:
            schema = self._known[frame.key]
        except KeyError:
            schema = self._look_up(frame)
        if schema is None:
            return frame.payload, None
        if isinstance(schema, str):
            return b"", schema
        try:
            text = schema.json_of(frame.payload)
        except ValueUnreadableError as error:
            return b"", f"Avro: {error} ({frame.version})"
        return (text, None) if len(text) <= MOST else (b"", TOO_MUCH)

    def _look_up(self, frame: Frame) -> AvroSchema | str | None:
        """Its schema; a text: why none is to be had; None: it has JSON."""
        if self._monotonic() < self._lacking.get(frame.key, 0.0):
            return LACKING
        version = frame.version
        if (found := self._ask(version)) is None:
            logger.warning("the Glue Schema Registry does not have version %s of a schema", version)
            if len(self._lacking) >= _MOST_LACKING:
                self._lacking.clear()
            self._lacking[frame.key] = self._monotonic() + _AGAIN
            return LACKING
        self._known[frame.key] = schema = _read(version, found)
        return schema


def _read(version: UUID, found: SchemaVersion) -> AvroSchema | str | None:
    if found.data_format == "JSON":
        return None
    if found.data_format != "AVRO":
        return f"{found.data_format.capitalize()}, which is not read: {version}"
    try:
        return AvroSchema(found.definition)
    except SchemaError as error:
        return f"of a schema that {error}: {version}"


def in_json(batches: Iterable[pa.RecordBatch], texts: AvroTexts) -> Iterator[pa.RecordBatch]:
    """Batches of raw records with `lakestream.kinesis.texts.TEXT`, and with `REASON` where a record has none.

    A batch that has reasons already stays as it is: it has marks of what could not be read.
    """
    for batch in batches:
        if REASON in batch.schema.names:
            yield batch
        else:
            yield from with_texts(batch, map(texts.text_of, batch.column("data").to_pylist()))


@lru_cache(maxsize=4)
def texts_of(settings: RegistrySettings) -> AvroTexts:
    """Of a process, whose tasks ask for a schema once."""
    return AvroTexts(GlueRegistry(settings).version)
