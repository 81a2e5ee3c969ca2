"""The rule that both changes of the retention period share."""

from __future__ import annotations

from lakestream_localkinesis.core.stream import DEFAULT_RETENTION_HOURS
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import Fields

LONGEST_HOURS = 8760
"""365 days."""


def read_hours(fields: Fields) -> int:
    """RetentionPeriodHours, from a day to a year; checks the other fields read so far as well."""
    hours = fields.integer("RetentionPeriodHours")
    fields.check()
    if hours < DEFAULT_RETENTION_HOURS:
        raise InvalidArgumentException(
            f"Minimum allowed retention period is {DEFAULT_RETENTION_HOURS} hours. "
            f"Requested retention period ({hours} hours) is too short."
        )
    if hours > LONGEST_HOURS:
        raise InvalidArgumentException(
            f"Maximum allowed retention period is {LONGEST_HOURS} hours. "
            f"Requested retention period ({hours} hours) is too long."
        )
    return hours
