"""Where reading a shard begins: the iterator types of GetShardIterator, the starting positions of SubscribeToShard."""

from __future__ import annotations

from dataclasses import dataclass

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.sequence import created_s_of, is_sequence, shard_index_of
from lakestream_localkinesis.core.shard import Cursor, Shard, shard_id
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import Text

POSITION_TYPE = Text(choices=("AFTER_SEQUENCE_NUMBER", "LATEST", "AT_TIMESTAMP", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"))


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a shard, as requests name it."""

    type: str
    sequence: str | None
    timestamp_ms: int | None

    def cursor(self, account: Account, stream: Stream, shard: Shard, now_ms: int) -> Cursor:
        """The place in this shard."""
        shard.trim(stream.horizon_ms(now_ms))
        match self.type:
            case "TRIM_HORIZON" | "LATEST":
                if self.sequence is not None:
                    raise InvalidArgumentException(_SEQUENCE_MISMATCH.format(self.type, "also a"))
                return shard.at_horizon() if self.type == "TRIM_HORIZON" else shard.at_tip(now_ms)
            case "AT_TIMESTAMP":
                return self._at_timestamp(shard, now_ms)
            case _:
                number = self._checked_sequence(account, stream, shard)
                return shard.at_sequence(number + (self.type == "AFTER_SEQUENCE_NUMBER"))

    def _at_timestamp(self, shard: Shard, now_ms: int) -> Cursor:
        timestamp_ms = self.timestamp_ms
        if timestamp_ms is None:
            raise InvalidArgumentException(
                "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. "
                "Current request has no timestamp parameter."
            )
        if timestamp_ms > now_ms:
            raise InvalidArgumentException(
                "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
                f"timestampInMillis: {timestamp_ms}, currentTimestampInMillis: {now_ms}"
            )
        return shard.at_time(timestamp_ms)

    def _checked_sequence(self, account: Account, stream: Stream, shard: Shard) -> int:
        if self.sequence is None:
            raise InvalidArgumentException(_SEQUENCE_MISMATCH.format(self.type, "no"))
        number = int(self.sequence)
        used = (
            f"StartingSequenceNumber {self.sequence} used in GetShardIterator on shard {shard.id} in stream "
            f"{stream.name} under account {account.settings.id} is invalid"
        )
        if not is_sequence(number):
            raise InvalidArgumentException(f"{used}.")
        if shard_index_of(number) != shard.index:
            raise InvalidArgumentException(
                f"Invalid StartingSequenceNumber. It encodes {shard_id(shard_index_of(number))}, "
                f"while it was used in a call to a shard with {shard.id}"
            )
        if created_s_of(number) != shard.created_s:
            raise InvalidArgumentException(f"{used} because it did not come from this stream.")
        return number


_SEQUENCE_MISMATCH = (
    "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or "
    "(2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. "
    "Request specified {} and {} StartingSequenceNumber."
)
