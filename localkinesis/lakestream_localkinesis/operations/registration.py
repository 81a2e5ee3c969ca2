"""What the operations on consumers share: how requests name one, how answers show it."""

from __future__ import annotations

import re
from typing import Any

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.consumer import Consumer
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import InvalidArgumentException, ResourceNotFoundException
from lakestream_localkinesis.fields import Fields, Text
from lakestream_localkinesis.operations.answer import seconds

CONSUMER_NAME = Text("[a-zA-Z0-9_.-]+", 1, 128)
CONSUMER_ARN = Text(
    r"^(arn):aws.*:kinesis:.*:\d{12}:.*stream\/[a-zA-Z0-9_.-]+\/consumer\/[a-zA-Z0-9_.-]+:[0-9]+", 1, 2048
)
_RESOURCE = re.compile(r"stream/([^/]+)/consumer/.+")


def stream_of_consumer(resource: str) -> str | None:
    """The stream of a consumer, by what its ARN names; None if it names no consumer."""
    named = _RESOURCE.fullmatch(resource)
    return named.group(1) if named else None


def find_consumer(account: Account, stream: Stream, arn: str) -> Consumer:
    """The consumer of a stream that an ARN names."""
    for consumer in stream.consumers.values():
        if consumer.arn == arn:
            return consumer
    raise ResourceNotFoundException(f"Consumer {arn} under account {account.settings.id} not found.")


def read_consumer(account: Account, fields: Fields, operation: str, now_ms: int) -> tuple[Stream, Consumer]:
    """The consumer that a request names by its ARN, or by its stream's ARN and its name; also by all three."""
    of_stream = fields.stream_of_arn(account)
    name = fields.optional_text("ConsumerName", CONSUMER_NAME)
    resource = fields.resource("ConsumerARN", CONSUMER_ARN, account)
    fields.check()
    of_consumer = None if resource is None else stream_of_consumer(resource)
    if of_consumer is None and (of_stream is None or name is None):
        raise InvalidArgumentException("Either ConsumerARN or both StreamARN and ConsumerName must be given.")
    stream = account.stream(of_consumer or of_stream or "", now_ms)
    account.admit_to(stream, operation, now_ms)
    if resource is None:
        found = stream.consumers.get(name or "")
        if found is None:
            raise ResourceNotFoundException(
                f"Consumer {name} of stream {stream.name} under account {account.settings.id} not found."
            )
        return stream, found
    consumer = find_consumer(account, stream, fields.values["ConsumerARN"])
    if of_stream not in (None, stream.name) or name not in (None, consumer.name):
        raise InvalidArgumentException("StreamARN, ConsumerName and ConsumerARN refer to different consumers.")
    return stream, consumer


def describe_consumer(consumer: Consumer, now_ms: int) -> dict[str, Any]:
    """The API's Consumer."""
    return {
        "ConsumerName": consumer.name,
        "ConsumerARN": consumer.arn,
        "ConsumerStatus": consumer.status(now_ms).value,
        "ConsumerCreationTimestamp": seconds(consumer.created_ms),
    }
