"""Rules that the operations on tags share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.consumer import Consumer
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import InvalidArgumentException, ResourceNotFoundException
from lakestream_localkinesis.fields import Fields, Text
from lakestream_localkinesis.operations.registration import find_consumer, stream_of_consumer

RESOURCE_ARN = Text(r"arn:aws.*:kinesis:.*:\d{12}:.*(stream|channel|queue)/\S+", 1, 2048)
MOST_TAGS = 50
"""Tags of one resource."""

# Kinesis names % among the valid characters, and then refuses it in words of its own; tabs are no white space to it.
_ALLOWED = re.compile(r"[\w .:/=+\-@]*")


def check_tags(tags: Mapping[str, str] | Iterable[str]) -> None:
    """Refuse characters that Kinesis does not take."""
    texts = [*tags, *(tags.values() if isinstance(tags, Mapping) else ())]
    if not all(_ALLOWED.fullmatch(text) for text in texts):
        raise InvalidArgumentException(
            "Some tags contain invalid characters. "
            "Valid characters: Unicode letters, digits, white space, _ . : / = + - @."
        )


def merge_tags(what: str, present: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The tags of `what` with more of them, or new values for them."""
    check_tags(more)
    tagged = {**present, **more}
    if len(tagged) > MOST_TAGS:
        raise InvalidArgumentException(
            f"Failed to add tags to {what} because it cannot have more than {MOST_TAGS} tags associated with it."
        )
    return tagged


def tagged_resource(account: Account, fields: Fields, now_ms: int, *, to_change: bool) -> Stream | Consumer:
    """The stream or consumer that ResourceARN names; one that is to be changed has to be ACTIVE."""
    resource = fields.resource("ResourceARN", RESOURCE_ARN, account)
    if resource is None:
        resource = fields.text("ResourceARN", RESOURCE_ARN)
    fields.check()
    of_consumer = stream_of_consumer(resource)
    kind, _, name = resource.partition("/")
    if of_consumer is None and kind != "stream":
        # Queues and channels are not served.
        raise ResourceNotFoundException(f"{fields.values['ResourceARN']} not found.")
    stream_name = of_consumer or name
    stream = account.active_stream(stream_name, now_ms) if to_change else account.stream(stream_name, now_ms)
    return find_consumer(account, stream, fields.values["ResourceARN"]) if of_consumer else stream
