"""SubscribeToShard's answer: events in frames of application/vnd.amazon.eventstream. No sockets, no waiting.

A frame: its length, that of its headers, a CRC-32 of both, headers, payload, and a CRC-32 of all that. Numbers have 4
bytes, big-endian. Source: "Event Stream" in the Smithy specification.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping
from typing import Any

from lakestream_localkinesis.core.shard import Page
from lakestream_localkinesis.core.subscription import Subscription
from lakestream_localkinesis.errors import ApiError, InternalFailureException
from lakestream_localkinesis.operations.answer import describe_children, with_records
from lakestream_localkinesis.wire import WireFormat, encode_answer, encode_structure

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7
_PAYLOAD_TYPES = {WireFormat.JSON: "application/json", WireFormat.CBOR: "application/cbor"}


class EventStream:
    """The frames of a subscription, as they come due."""

    def __init__(self, subscription: Subscription, wire: WireFormat) -> None:
        self._subscription = subscription
        self._wire = wire
        self._begun = False
        self.ended = False
        """No frame comes any more."""

    def poll(self, now_ms: int) -> bytes:
        """The next frame; empty if none is due."""
        if not self._begun:
            self._begun = True
            return self._event("initial-response", encode_structure(self._wire, {}))
        try:
            page = self._subscription.next_page(now_ms)
        except ApiError as error:
            return self._exception(error)
        except Exception:
            logger.exception("a subscription failed")
            return self._exception(InternalFailureException("The server failed; its log says why."))
        self.ended = self._subscription.ended
        return b"" if page is None else self._event("SubscribeToShardEvent", self._page(page))

    def _page(self, page: Page) -> bytes:
        subscription = self._subscription
        rest: dict[str, Any] = {"MillisBehindLatest": page.behind_ms}
        if page.following is None:
            rest["ChildShards"] = describe_children(subscription.stream, subscription.shard)
        else:
            rest["ContinuationSequenceNumber"] = str(subscription.continuation())
        return encode_answer(self._wire, with_records(page.records, rest))

    def _event(self, kind: str, payload: bytes) -> bytes:
        return self._frame({":message-type": "event", ":event-type": kind}, payload)

    def _exception(self, error: ApiError) -> bytes:
        self.ended = True
        payload = encode_structure(self._wire, {"message": str(error)})
        return self._frame({":message-type": "exception", ":exception-type": error.code}, payload)

    def _frame(self, headers: dict[str, str], payload: bytes) -> bytes:
        return render_frame({**headers, ":content-type": _PAYLOAD_TYPES[self._wire]}, payload)


def render_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A frame whose headers are all text."""
    head = b"".join(
        bytes((len(name),)) + name.encode() + bytes((_STRING,)) + len(value).to_bytes(2) + value.encode()
        for name, value in headers.items()
    )
    sizes = (16 + len(head) + len(payload)).to_bytes(4) + len(head).to_bytes(4)
    message = b"".join((sizes, zlib.crc32(sizes).to_bytes(4), head, payload))
    return message + zlib.crc32(message).to_bytes(4)
