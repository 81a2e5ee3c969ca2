"""DescribeStreamSummary."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.limits import KIB
from lakestream_localkinesis.core.stream import StreamMode
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer, describe_identity, describe_settings


def describe_stream_summary(account: Account, fields: Fields, now_ms: int) -> Answer:
    """The stream without its shards."""
    name = fields.stream_name(account)
    fields.check()
    stream = account.stream(name, now_ms)
    summary = {
        **describe_identity(stream),
        **describe_settings(stream),
        "OpenShardCount": len(stream.open_shards()),
        "ConsumerCount": len(stream.consumers),
        "MaxRecordSizeInKiB": stream.max_record_bytes // KIB,
    }
    if stream.mode is StreamMode.ON_DEMAND:
        # Only these have the field.
        summary["RecordDistributionStrategy"] = stream.distribution.value
    return {"StreamDescriptionSummary": summary}
