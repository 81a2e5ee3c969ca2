"""What Kinesis pushes to a consumer of enhanced fan-out: events of SubscribeToShard, as pages. No sockets.

Source: "Event Stream" in the Smithy specification, and the API reference of SubscribeToShard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from botocore.eventstream import EventStreamBuffer, ParserError

from lakestream.errors import KinesisAnswerError, KinesisUnavailableError
from lakestream.kinesis import answers
from lakestream.kinesis.port import RecordPage

_EVENT = "SubscribeToShardEvent"
_OPERATION = "SubscribeToShard"


def pushed_pages(parts: Iterable[bytes]) -> Iterator[RecordPage]:
    """The pages in the body of an answer. Behind the last one of a shard that was closed there is no next iterator.

    Raises:
        KinesisError: what Kinesis ended the subscription with.
        KinesisAnswerError: it is no such body.
    """
    buffer = EventStreamBuffer()
    for part in parts:
        buffer.add_data(part)
        try:
            message: Any  # what an iterator gives, by its stubs a number
            for message in buffer:
                page = _page(message.headers, message.payload)
                if page is not None:
                    yield page
        except ParserError as error:
            raise KinesisAnswerError.of(_OPERATION, str(error)) from error


def _page(headers: dict[str, Any], payload: bytes) -> RecordPage | None:
    """The page of a message; None: it has none."""
    match headers.get(":message-type"):
        case "event" if headers.get(":event-type") == _EVENT:
            try:
                return answers.record_page(payload)
            except answers.NONSENSE as error:
                raise KinesisAnswerError.of(_OPERATION, str(error)) from error
        case "exception":
            raise answers.pushed_error(str(headers.get(":exception-type")), payload)
        case "error":
            raise KinesisUnavailableError(f"{headers.get(':error-code')}: {headers.get(':error-message')}")
    return None  # such as the first, which says that the subscription is there
