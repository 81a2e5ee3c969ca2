"""PutRecord."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.hashing import key_digest
from lakestream_localkinesis.core.shard import Arrival
from lakestream_localkinesis.core.stream import RecordDistribution
from lakestream_localkinesis.errors import (
    DryRunOperationException,
    InvalidArgumentException,
    ProvisionedThroughputExceededException,
)
from lakestream_localkinesis.fields import SEQUENCE_NUMBER, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.entry import missing_keys, oversized, read_entry


def put_record(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Add one record, or refuse it if its shard's rate is used up.

    SequenceNumberForOrdering is checked and otherwise without effect: one server orders all puts anyway.
    """
    name = fields.stream_name(account)
    after = fields.optional_text("SequenceNumberForOrdering", SEQUENCE_NUMBER)
    dry_run = fields.boolean("DryRun")
    fields.check()
    data, key, key_json, explicit, size = read_entry(fields.values)
    stream = account.data_stream(name, now_ms)
    if stream.distribution is RecordDistribution.AUTO:
        if after is not None:
            raise InvalidArgumentException(
                f"SequenceNumberForOrdering cannot be used with stream {name}, "
                "whose RecordDistributionStrategy is AUTO."
            )
        shard = stream.next_shard()
    elif not key:
        raise missing_keys([None])
    else:
        shard = stream.shard_for(explicit or key_digest(key))
    if size > stream.max_record_bytes:
        raise oversized(stream, size)
    if dry_run:
        raise DryRunOperationException
    sequence = shard.append(data, key_json, size, Arrival(now_ms))
    if sequence is None:
        raise ProvisionedThroughputExceededException(rate_exceeded(account, name, shard.id))
    return {"ShardId": shard.id, "SequenceNumber": sequence, "EncryptionType": "NONE"}


def rate_exceeded(account: Account, stream: str, shard: str) -> str:
    """Kinesis's words for a shard whose rate is used up."""
    return f"Rate exceeded for shard {shard} in stream {stream} under account {account.settings.id}."
