"""DeleteStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer


def delete_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Delete an ACTIVE stream with all it holds."""
    name = fields.stream_name(account)
    fields.check()
    account.delete(account.active_stream(name, now_ms), now_ms)
    return {}
