"""DecreaseStreamRetentionPeriod."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.retention import read_hours


def decrease_stream_retention_period(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Keep records for less long, 24 hours at least; older ones are gone at once."""
    name = fields.stream_name(account)
    hours = read_hours(fields)
    stream = account.active_stream(name, now_ms)
    if hours > stream.retention_hours:
        raise InvalidArgumentException(
            f"Requested retention period ({hours} hours) for stream {name} can not be longer than existing "
            f"retention period ({stream.retention_hours} hours). Use IncreaseStreamRetentionPeriod API."
        )
    stream.retain(hours, now_ms)
    return {}
