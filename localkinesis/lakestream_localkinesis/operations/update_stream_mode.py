"""UpdateStreamMode: provisioned or on demand."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.changes import SetMode
from lakestream_localkinesis.core.stream import StreamMode
from lakestream_localkinesis.errors import LimitExceededException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.create_stream import MODE, refuse_warm_throughput
from lakestream_localkinesis.operations.update_shard_count import DAY_MS

CHANGES_A_DAY = 2


def update_stream_mode(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Change a stream's mode, twice in 24 hours at most; its shards stay as they are."""
    name = fields.required_stream_of_arn(account)
    details = fields.required_structure("StreamModeDetails")
    wanted = details.text("StreamMode", MODE)
    refuse_warm_throughput(account, fields)
    fields.check()
    mode = StreamMode(wanted)
    stream = account.active_stream(name, now_ms)
    recent = [at for at in stream.mode_changes_ms if at > now_ms - DAY_MS]
    if len(recent) >= CHANGES_A_DAY:
        raise LimitExceededException(
            f"Stream {name} has changed its mode {CHANGES_A_DAY} times in the last 24 hours, which is the limit."
        )
    if mode is StreamMode.ON_DEMAND and stream.mode is not mode:
        account.check_on_demand_quota()
    stream.mode_changes_ms = [*recent, now_ms]
    account.update(stream, SetMode(mode), now_ms)
    return {}
