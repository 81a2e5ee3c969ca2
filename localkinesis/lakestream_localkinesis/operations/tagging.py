"""Rules that the operations on tags share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lakestream_localkinesis.errors import InvalidArgumentException

MOST_TAGS = 50
"""Tags of one stream."""

_ALLOWED = re.compile(r"[\w\s.:/=+\-%@]*")


def check_tags(tags: Mapping[str, str] | Iterable[str]) -> None:
    """Refuse characters that Kinesis does not take."""
    texts = [*tags, *(tags.values() if isinstance(tags, Mapping) else ())]
    if not all(_ALLOWED.fullmatch(text) for text in texts):
        raise InvalidArgumentException(
            "Some tags contain invalid characters. "
            "Valid characters: Unicode letters, digits, white space, _ . / = + - % @."
        )
