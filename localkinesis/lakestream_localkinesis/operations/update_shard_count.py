"""UpdateShardCount: uniform scaling."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.changes import Scale
from lakestream_localkinesis.core.stream import HOUR_MS, Stream, StreamMode
from lakestream_localkinesis.errors import (
    InvalidArgumentException,
    LimitExceededException,
    ValidationException,
)
from lakestream_localkinesis.fields import Fields, Text
from lakestream_localkinesis.operations.answer import Answer

SCALING_TYPE = Text(choices=("UNIFORM_SCALING",))
MOST_SHARDS = 10_000
DAY_MS = 24 * HOUR_MS
CHANGES_A_DAY = 10


def update_shard_count(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Reshard to equal ranges: at most double, at least half, ten times in 24 hours."""
    name = fields.stream_name(account)
    target = fields.integer("TargetShardCount")
    fields.text("ScalingType", SCALING_TYPE)
    fields.check()
    stream = account.active_stream(name, now_ms)
    check_provisioned(stream)
    current = len(stream.open_shards())
    if target > MOST_SHARDS:
        raise LimitExceededException(f"UpdateShardCount cannot scale a stream beyond {MOST_SHARDS} shards.")
    if target > 2 * current:
        raise InvalidArgumentException("UpdateShardCount cannot scale up over double your current open shard count.")
    if 2 * target < current:
        raise InvalidArgumentException("UpdateShardCount cannot scale down below half your current open shard count.")
    recent = [at for at in stream.reshardings_ms if at > now_ms - DAY_MS]
    if len(recent) >= CHANGES_A_DAY:
        raise LimitExceededException(
            f"Stream {name} has been scaled {CHANGES_A_DAY} times in the last 24 hours, which is the limit."
        )
    account.check_shard_quota(max(0, target - current))
    stream.reshardings_ms = [*recent, now_ms]
    account.update(stream, Scale(target), now_ms)
    return {
        "StreamName": name,
        "StreamARN": stream.arn,
        "CurrentShardCount": current,
        "TargetShardCount": target,
    }


def check_provisioned(stream: Stream) -> None:
    """Refuse to reshard a stream that does so by itself."""
    if stream.mode is StreamMode.ON_DEMAND:
        raise ValidationException(f"Stream {stream.name} is in ON_DEMAND mode: it shards itself.")
