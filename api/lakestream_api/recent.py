"""What a driver's batches of the last minutes add up to: a report has no room for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Protocol, Self

from lakestream_api.base import WireModel
from lakestream_api.bounds import Count, Time

WINDOW = timedelta(minutes=5)
"""A single batch of a few records says little, and an hour ago is long ago."""
_JITTER = timedelta(seconds=2)
"""By which a batch's horizon may lie before that of the one before: Kinesis's clock is known to a second."""


class Summarised(Protocol):
    """What is added up of a batch: a `BatchSummary`."""

    @property
    def finished_at(self) -> datetime: ...
    @property
    def horizon(self) -> datetime | None: ...
    @property
    def records(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def kinesis_records(self) -> int | None: ...
    @property
    def kinesis_bytes(self) -> int | None: ...
    @property
    def quarantined(self) -> int: ...
    @property
    def filtered(self) -> int: ...
    @property
    def largest_shard_bytes(self) -> int: ...
    @property
    def largest_shard_kinesis_records(self) -> int: ...


class Arrived(WireModel):
    """What arrived in a stream, as Kinesis counts it.

    Over arrival time and not the clock: a driver that works off a backlog reads faster than records come.
    """

    since: Time
    until: Time
    """Nothing is known of what arrived later."""

    bytes: Count
    kinesis_records: Count
    """Aggregates of the Kinesis Producer Library are one record."""

    largest_shard_bytes: Count
    """Of the shard that gave most to each batch."""

    largest_shard_kinesis_records: Count


class Recent(WireModel):
    """The batches of the last five minutes together."""

    records: Count
    """Records read."""

    filtered: Count = 0
    """Those of them that `spec.filter` left out."""

    quarantined: Count
    """Those of them that are in quarantine."""

    arrived: Arrived | None = None
    """Over five minutes of arrival time, or as much as is known; none: the batches do not tell."""

    @classmethod
    def of(cls, batches: Sequence[Summarised], caught_up_to: datetime | None) -> Self:
        """Add batches up.

        Args:
            batches: one at least, the newest last.
            caught_up_to: arrival time up to which there was nothing to read behind them; None: nobody has looked.
        """
        end = batches[-1].finished_at
        # Those of a time that the driver's clock was set back from are no later ones.
        last = [one for one in batches if end - WINDOW < one.finished_at <= end]
        return cls(
            records=sum(one.records for one in last),
            filtered=sum(one.filtered for one in last),
            quarantined=sum(one.quarantined for one in last),
            arrived=_arrived(batches, caught_up_to),
        )


def _arrived(batches: Sequence[Summarised], caught_up_to: datetime | None) -> Arrived | None:
    """A batch's records arrived between the horizon of the batch before and its own, so the first one only tells where
    to begin."""
    horizons = [(batch.horizon, batch) for batch in batches if batch.horizon]
    # Behind a restore the stream is read once more: what arrived then was told by the batches before.
    falls = [at for at, ((one, _), (other, _)) in enumerate(pairwise(horizons), 1) if other < one - _JITTER]
    horizons = horizons[falls[-1] if falls else 0 :]
    if not horizons:
        return None
    until = horizons[-1][0]
    if caught_up_to is not None:
        # Nothing had arrived until then.
        until = max(until, caught_up_to)
    since = max((horizon for horizon, _ in horizons if until - horizon >= WINDOW), default=horizons[0][0])
    counted = [batch for horizon, batch in horizons if horizon > since]
    return Arrived(
        since=since,
        until=until,
        bytes=sum(one.bytes if one.kinesis_bytes is None else one.kinesis_bytes for one in counted),
        kinesis_records=sum(one.records if one.kinesis_records is None else one.kinesis_records for one in counted),
        largest_shard_bytes=sum(one.largest_shard_bytes for one in counted),
        largest_shard_kinesis_records=sum(one.largest_shard_kinesis_records for one in counted),
    )
