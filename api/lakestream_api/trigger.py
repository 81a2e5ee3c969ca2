"""When a writer's batches begin, and how large they get."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from lakestream_api.base import ApiModel
from lakestream_api.cel import rule, rules
from lakestream_api.quantities import Duration, Size, format_duration, format_size

_MIN_INTERVAL = timedelta(milliseconds=200)
_MAX_INTERVAL = timedelta(hours=1)
_MIN_BATCH_BYTES = 1 << 20


def _interval(value: timedelta) -> timedelta:
    # Kinesis answers five GetRecords a second and shard; a batch needs one at least.
    if not _MIN_INTERVAL <= value <= _MAX_INTERVAL:
        limits = f"{format_duration(_MIN_INTERVAL)} to {format_duration(_MAX_INTERVAL)}"
        raise ValueError(f"is {format_duration(value)}; choose from {limits}")
    return value


def _batch_bytes(value: int) -> int:
    # One record may have 1 MiB.
    if value < _MIN_BATCH_BYTES:
        raise ValueError(f"is {format_size(value)}; a batch must have room for 1Mi at least")
    return value


class Trigger(ApiModel):
    """When a batch begins, and how large it may get."""

    interval: Annotated[Duration, AfterValidator(_interval)] = Field(
        default=timedelta(seconds=10),
        json_schema_extra=rules(
            rule(
                "!self.matches('^([0-9]+(h|m|s|ms))+$')"
                " || (duration(self) >= duration('200ms') && duration(self) <= duration('1h'))",
                "choose from 200ms to 1h",
            )
        ),
    )
    """Time between the beginnings of two batches, `200ms` to `1h`. While there is a backlog,
    the next batch begins at once. A shard answers five reads a second, of all consumers
    together, and a writer mostly takes two of them for a batch: below `400ms` for each writer,
    some are throttled."""

    max_records_per_batch: int = Field(default=500_000, ge=1, le=1_000_000_000)
    """Records that a batch of a backlog comes near to at most. It has fewer where they would take longer than one and a
    half intervals, or where a shard would be asked for more than the 10 MB that it gives at once. A first one, of which
    nothing is known, has more if the stream is one of aggregates: it takes records of the stream for those of users."""

    max_bytes_per_batch: Annotated[Size, AfterValidator(_batch_bytes)] = Field(
        default=256 << 20,
        json_schema_extra=rules(
            rule(
                "type(self) == int ? self >= 1048576 : !isQuantity(self)"
                " || quantity(self).compareTo(quantity('1Mi')) >= 0",
                "a batch must have room for 1Mi at least",
            )
        ),
    )
    """Bytes of record data that a batch of a backlog comes near to at most; at least `1Mi`."""
