"""Rules that the operations on tags share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakestream_localkinesis.errors import InvalidArgumentException

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
