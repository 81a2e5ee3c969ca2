"""Frames have in them what an event says, by the schema that is registered for them; a registry has it, or trouble."""

from __future__ import annotations

import io
import json
import zlib
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import boto3
import fastavro
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chaos.events import Digits, Events
from chaos.frames import Frames
from chaos.registry import Registry, Trouble, registry


class Versions:
    """That are registered."""

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[str, str]] = {}

    def register(self, version: bytes, data_format: str, definition: str) -> None:
        assert version not in self.known
        self.known[version] = data_format, definition

    def read(self, data: bytes) -> dict[str, Any]:
        """What a frame has in it, but for what is null."""
        assert data[0] == 3
        payload = zlib.decompress(data[18:]) if data[1] else data[18:]
        data_format, definition = self.known[data[2:18]]
        if data_format == "JSON":
            found = json.loads(payload, parse_float=Digits)
            found["amount"], found["at"] = Decimal(found["amount"].digits), datetime.fromisoformat(found["at"])
        else:
            stream = io.BytesIO(payload)
            found = fastavro.schemaless_reader(stream, fastavro.parse_schema(json.loads(definition)), None)
            assert not stream.read()
        return {name: value for name, value in found.items() if value is not None}


def test_what_is_in_a_frame_is_the_event() -> None:
    versions, formats = Versions(), set()
    frames = Frames(Random(5), versions.register)
    events = Events(Random(5))
    for event in [events.fresh() for _ in range(600)]:
        data = frames.event(event)
        formats.add((versions.known[data[2:18]][0], data[1]))
        fields = {**event.fields(), "amount": Decimal(event.amount), "at": datetime.fromisoformat(event.at)}
        place = dict.fromkeys(("room", "open", "names")) if versions.known[data[2:18]][0] == "AVRO" else {}
        if event.place is not None:
            fields["place"] = {**place, **event.place}
        if event.tags is not None:
            fields["tags"] = [*event.tags]
        assert versions.read(data) == {name: value for name, value in fields.items() if value is not None}
    assert formats == {("AVRO", 0), ("AVRO", 5), ("JSON", 0), ("JSON", 5)}
    assert len(versions.known) > 10


def test_what_is_damaged_cannot_be_read() -> None:
    versions = Versions()
    frames, kinds = Frames(Random(6), versions.register), set()
    for _ in range(200):
        sent = frames.damaged(Events(Random(6)).fresh())
        kinds.add(sent.kind)
        with pytest.raises((AssertionError, EOFError, UnicodeDecodeError, OverflowError, AttributeError, IndexError)):
            versions.read(sent.data)
    assert len(kinds) == 6


def ask(schemas: Registry, version: bytes) -> dict[str, Any]:
    config = Config(retries={"total_max_attempts": 1}, read_timeout=5)
    secrets = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = boto3.client("glue", "us-east-1", endpoint_url=schemas.url, config=config, **secrets)
    return client.get_schema_version(SchemaVersionId=str(UUID(bytes=version)))


def test_a_registry_has_what_was_registered() -> None:
    with registry() as schemas:
        schemas.register(b"v" * 16, "AVRO", '"long"')
        found = ask(schemas, b"v" * 16)
        assert (found["DataFormat"], found["SchemaDefinition"]) == ("AVRO", '"long"')
        with pytest.raises(ClientError, match="EntityNotFound"):
            ask(schemas, b"w" * 16)


@pytest.mark.parametrize("trouble", Trouble)
def test_a_trouble_befalls_so_many_requests(trouble: Trouble) -> None:
    with registry() as schemas:
        schemas.register(b"v" * 16, "AVRO", '"long"')
        schemas.trouble(trouble, 2, 0.01)
        for _ in range(2):
            if trouble is Trouble.LATE:
                assert ask(schemas, b"v" * 16)
            else:
                with pytest.raises((ClientError, BotoCoreError)):
                    ask(schemas, b"v" * 16)
        assert ask(schemas, b"v" * 16)
        schemas.trouble(trouble, 9, 30)
        schemas.calm()
        assert ask(schemas, b"v" * 16)
