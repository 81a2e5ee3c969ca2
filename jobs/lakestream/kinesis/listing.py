"""What ListShards and DescribeStreamSummary say of a stream, asked no more often than need be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream.errors import StreamRecreatedError
from lakestream.kinesis.port import KinesisClient, Shard, StreamSummary


@dataclass(frozen=True, slots=True)
class Listing:
    """What they said, and when."""

    shards: dict[str, Shard]
    summary: StreamSummary
    at: datetime


class Listings:
    """The newest listing of a stream."""

    def __init__(self, client: KinesisClient, refresh: timedelta) -> None:
        """`refresh`: how old a listing may become."""
        self._client = client
        self._refresh = refresh
        self.newest: Listing | None = None
        """None: shards were not listed yet."""

    def at(self, now: datetime) -> Listing:
        """One that is not too old at that (Kinesis) time.

        Raises:
            StreamRecreatedError: the stream was deleted and created again since the last one.
        """
        known = self.newest
        return known if known is not None and now - known.at < self._refresh else self.anew(now)

    def anew(self, now: datetime) -> Listing:
        """One of now. Raises as `at`."""
        summary = self._summary()
        self.newest = Listing({shard.shard_id: shard for shard in self._client.list_shards()}, summary, now)
        return self.newest

    def look_at_retention(self, now: datetime) -> None:
        """Ask for what may have changed though no shard did. Raises as `at`."""
        self.newest = replace(self.at(now), summary=self._summary())

    def _summary(self) -> StreamSummary:
        summary, before = self._client.describe_stream_summary(), self.newest
        if before is not None and summary.created_at != before.summary.created_at:
            raise StreamRecreatedError.of(summary.arn, before.summary.created_at, summary.created_at)
        return summary
