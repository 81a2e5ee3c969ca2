"""One account in one region: its streams, and the quotas they share."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field

from lakestream_localkinesis.core.changes import Change, Delete, Open
from lakestream_localkinesis.core.limits import CallRate, Limits
from lakestream_localkinesis.core.shard import Shard
from lakestream_localkinesis.core.stream import Stream, StreamMode, StreamStatus, Transition
from lakestream_localkinesis.core.token import TokenSealer
from lakestream_localkinesis.errors import (
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    SettingsError,
)


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """What is fixed about an account."""

    id: str = "000000000000"
    region: str = "us-east-1"
    limits: Limits = field(default_factory=Limits)
    shard_quota: int = 20_000
    """Open provisioned shards; 20,000 is Kinesis's default in its largest regions."""
    on_demand_quota: int = 50
    """On-demand streams: Kinesis's default."""
    transition_ms: int = 0
    """How long a stream stays CREATING, UPDATING or DELETING; tens of seconds in Kinesis, nothing by default here."""

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9]{12}", self.id):
            raise SettingsError(f"account: {self.id!r} is not 12 digits")
        if not re.fullmatch(r"[a-z0-9-]+", self.region):
            raise SettingsError(f"region: {self.region!r} is no name of a region")
        if self.transition_ms < 0:
            raise SettingsError(f"transition: {self.transition_ms} ms is below 0")


# Calls a second per account. Source: the Kinesis Data Streams API reference, operation by operation.
OPERATION_RATES = {
    "CreateStream": 5,
    "DeleteStream": 5,
    "DescribeStream": 10,
    "DescribeStreamSummary": 20,
    "ListStreams": 5,
    "SplitShard": 5,
    "MergeShards": 5,
    "UpdateShardCount": 10,
    "IncreaseStreamRetentionPeriod": 5,
    "DecreaseStreamRetentionPeriod": 5,
    "AddTagsToStream": 5,
    "RemoveTagsFromStream": 5,
    "ListTagsForStream": 5,
    "DescribeLimits": 1,
    "DescribeAccountSettings": 5,
    "RegisterStreamConsumer": 5,
}

# The same, per stream.
STREAM_RATES = {
    "ListShards": 1000,
    "DeregisterStreamConsumer": 5,
    "DescribeStreamConsumer": 20,
    "ListStreamConsumers": 5,
}


MOST_CREATING = 5
"""Streams that may be CREATING at a time."""


class Account:
    """The streams of an account by name."""

    def __init__(self, settings: AccountSettings, sealer: TokenSealer | None = None) -> None:
        self.settings = settings
        self.sealer = sealer or TokenSealer()
        self.streams: dict[str, Stream] = {}
        rated = OPERATION_RATES if settings.limits.operation_rates else {}
        self._rates = {operation: CallRate(rate) for operation, rate in rated.items()}

    def admit(self, operation: str, now_ms: int) -> None:
        """Count a call of a control operation, or refuse it."""
        rate = self._rates.get(operation)
        if rate and not rate.admit(now_ms):
            raise LimitExceededException(f"Rate exceeded for account {self.settings.id}.")

    def admit_to(self, stream: Stream, operation: str, now_ms: int) -> None:
        """Count a call of an operation that is limited per stream, or refuse it."""
        if not self.settings.limits.operation_rates:
            return
        rate = stream.rates.setdefault(operation, CallRate(STREAM_RATES[operation]))
        if not rate.admit(now_ms):
            raise LimitExceededException(f"Rate exceeded for stream {stream.name} under account {self.settings.id}.")

    def arn(self, name: str) -> str:
        """The ARN of a stream."""
        return f"arn:aws:kinesis:{self.settings.region}:{self.settings.id}:stream/{name}"

    def settle(self, now_ms: int) -> None:
        """Bring all streams up to date, also those that nobody asks about: retention bounds memory."""
        for stream in list(self.streams.values()):
            stream.settle(now_ms)
            self._forget_deleted(stream)

    def stream(self, name: str, now_ms: int) -> Stream:
        """A stream, up to date."""
        stream = self.streams.get(name)
        if stream:
            stream.settle(now_ms)
            self._forget_deleted(stream)
            if not stream.deleted:
                return stream
        raise self.not_found(name)

    def active_stream(self, name: str, now_ms: int) -> Stream:
        """A stream that can be changed."""
        stream = self.stream(name, now_ms)
        if stream.status is not StreamStatus.ACTIVE:
            raise ResourceInUseException(
                f"Stream {name} under account {self.settings.id} not ACTIVE, instead in state {stream.status}"
            )
        return stream

    def opened_stream(self, name: str, now_ms: int) -> Stream:
        """A stream whose shards can be listed: the empty list of one that is CREATING would be taken for all."""
        stream = self.stream(name, now_ms)
        if stream.status not in (StreamStatus.ACTIVE, StreamStatus.UPDATING):
            raise ResourceInUseException(
                f"Stream {name} under account {self.settings.id} not ACTIVE or UPDATING, "
                f"instead in state {stream.status}"
            )
        return stream

    def data_stream(self, name: str, now_ms: int) -> Stream:
        """A stream that can be written to."""
        stream = self.stream(name, now_ms)
        if stream.status not in (StreamStatus.ACTIVE, StreamStatus.UPDATING):
            raise self.not_found(name)
        return stream

    def create(self, name: str, mode: StreamMode, shards: int, tags: dict[str, str], now_ms: int) -> Stream:
        """Create a stream."""
        self.settle(now_ms)
        if name in self.streams:
            raise ResourceInUseException(f"Stream {name} under account {self.settings.id} already exists.")
        if mode is StreamMode.PROVISIONED:
            self.check_shard_quota(shards)
        else:
            self.check_on_demand_quota()
        ident = f"{secrets.token_hex(10)}-{secrets.token_hex(2)[:3]}"
        stream = Stream(name, self.arn(name), ident, now_ms, mode, self.settings.limits, tags=dict(tags))
        self.streams[name] = stream
        due_ms = now_ms + self.settings.transition_ms
        stream.begin(Transition(StreamStatus.CREATING, due_ms, Open(shards)), now_ms)
        return stream

    def delete(self, stream: Stream, now_ms: int) -> None:
        """Delete a stream with all it holds, and its consumers."""
        due_ms = now_ms + self.settings.transition_ms
        for consumer in stream.consumers.values():
            consumer.gone_ms = due_ms
        stream.begin(Transition(StreamStatus.DELETING, due_ms, Delete()), now_ms)
        self._forget_deleted(stream)

    def update(self, stream: Stream, change: Change, now_ms: int) -> None:
        """Change a stream that is ACTIVE."""
        due_ms = now_ms + self.settings.transition_ms
        stream.begin(Transition(StreamStatus.UPDATING, due_ms, change), now_ms)

    def not_found(self, name: str) -> ResourceNotFoundException:
        """The error for a stream that is not there."""
        return ResourceNotFoundException(f"Stream {name} under account {self.settings.id} not found.")

    def check_creating(self, now_ms: int) -> None:
        """Refuse to create a sixth stream while five are CREATING."""
        self.settle(now_ms)
        creating = sum(stream.status is StreamStatus.CREATING for stream in self.streams.values())
        if creating >= MOST_CREATING:
            raise LimitExceededException(
                f"Account {self.settings.id} has {creating} streams in the CREATING state, which is the limit."
            )

    def on_demand_streams(self) -> int:
        """How many streams are on demand."""
        return sum(stream.mode is StreamMode.ON_DEMAND for stream in self.streams.values())

    def provisioned_shards(self) -> int:
        """How many shards are open that count towards the quota."""
        provisioned = [stream for stream in self.streams.values() if stream.mode is StreamMode.PROVISIONED]
        return sum(len(stream.open_shards()) for stream in provisioned)

    def check_on_demand_quota(self) -> None:
        """Refuse one more on-demand stream than there may be."""
        quota = self.settings.on_demand_quota
        if self.on_demand_streams() >= quota:
            raise LimitExceededException(
                f"Account {self.settings.id} has {quota} on-demand streams, which is the limit."
            )

    def check_shard_quota(self, more: int) -> None:
        """Refuse what would open too many shards."""
        current = self.provisioned_shards()
        quota = self.settings.shard_quota
        if current + more > quota:
            raise LimitExceededException(
                f"This request would exceed the shard limit for the account {self.settings.id} in "
                f"{self.settings.region}. Current shard count for the account: {current}. Limit: {quota}. "
                f"Number of additional shards that would have resulted from this request: {more}. "
                "Refer to the AWS Service Limits page "
                "(http://docs.aws.amazon.com/general/latest/gr/aws_service_limits.html) "
                "for current limits and how to request higher limits."
            )

    def _forget_deleted(self, stream: Stream) -> None:
        if stream.deleted:
            self.streams.pop(stream.name, None)


def find_shard(account: Account, stream: Stream, name: str) -> Shard:
    """The shard of that name that is open or retained."""
    digits = name.rpartition("-")[2]
    if not (digits.isascii() and digits.isdigit()):
        raise ResourceNotFoundException(
            f"Could not find shard {name} in stream {stream.name} under account {account.settings.id}."
        )
    shard = stream.shards.get(int(digits))
    if shard is None:
        raise missing_shard(account, stream.name, name)
    return shard


def missing_shard(account: Account, stream: str, shard: str) -> ResourceNotFoundException:
    """The error for a shard that is not there (any more)."""
    return ResourceNotFoundException(
        f"Shard {shard} in stream {stream} under account {account.settings.id} does not exist"
    )
