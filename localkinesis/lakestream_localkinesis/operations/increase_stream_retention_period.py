"""IncreaseStreamRetentionPeriod."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.retention import read_hours


def increase_stream_retention_period(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Keep records longer, up to 365 days."""
    name = fields.stream_name(account)
    hours = read_hours(fields)
    stream = account.active_stream(name, now_ms)
    if hours < stream.retention_hours:
        raise InvalidArgumentException(
            f"Requested retention period ({hours} hours) for stream {name} can not be shorter than existing "
            f"retention period ({stream.retention_hours} hours). Use DecreaseStreamRetentionPeriod API."
        )
    stream.retain(hours, now_ms)
    return {}
