"""What the server's protocols and the application hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakestream_localkinesis.errors import RequestEntityTooLargeException

if TYPE_CHECKING:
    from lakestream_localkinesis.eventstream import EventStream


MOST_BODY_BYTES = 32 * 1024 * 1024
"""Twice the largest valid request: 10 MiB of data in base64, and 500 keys."""


class Body:
    """A request's body as it comes in.

    Of one that is too large nothing is kept, but its end is waited for: who is still sending would see a connection
    reset, and not the answer.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        """Take what came."""
        self._size += len(part)
        self._parts.append(part)
        if self._size > MOST_BODY_BYTES:
            self._parts.clear()

    def whole(self) -> bytes | None:
        """All of it; None if it was too large."""
        if self._size > MOST_BODY_BYTES:
            return None
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, complete."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes | None
    """None: larger than any that is valid."""
    keep_alive: bool = True

    def whole_body(self) -> bytes:
        """The body.

        Raises:
            RequestEntityTooLargeException: it is larger than any that is valid.
        """
        if self.body is None:
            raise RequestEntityTooLargeException(
                f"The body has more than {MOST_BODY_BYTES} bytes. Send less at once: PutRecords takes 10 MiB."
            )
        return self.body


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response and how it is to be delivered."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_ms: int = 0
    """How long it is held back: a fault."""
    events: EventStream | None = None
    """What goes on after the body, as it comes due."""
    to_head: bool = False
    """The body's length is said, and the body kept back."""
    drop: bool = False
    """Close the connection instead of answering: a fault."""

    def sent_body(self) -> bytes:
        """What goes out behind the headers."""
        return b"" if self.to_head else self.body
