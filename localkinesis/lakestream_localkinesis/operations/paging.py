"""Lists that come in pages, each with a token for the next."""

from __future__ import annotations

from lakestream_localkinesis.errors import ExpiredNextTokenException
from lakestream_localkinesis.fields import Text

MOST_ASKED = 10_000
"""More may be asked for than a page has."""
NEXT_TOKEN = Text(shortest=1, longest=1_048_576)
_LIFETIME_MS = 300_000


def check_age(sealed_ms: int, now_ms: int) -> None:
    """Refuse a token that has expired.

    Raises:
        ExpiredNextTokenException: it is older than five minutes.
    """
    if now_ms - sealed_ms > _LIFETIME_MS:
        raise ExpiredNextTokenException("The pagination token has expired.")
