"""What the server's protocols and the application hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakestream_localkinesis.eventstream import EventStream


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, complete."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    keep_alive: bool = True


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
    drop: bool = False
    """Close the connection instead of answering: a fault."""
