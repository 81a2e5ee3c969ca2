"""DeleteStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer


def delete_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Delete a stream with all it holds, in any state."""
    name = fields.stream_name()
    fields.check()
    account.delete(account.stream(name, now_ms), now_ms)
    return {}
