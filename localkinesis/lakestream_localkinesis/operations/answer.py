"""What an operation answers."""

from __future__ import annotations

from typing import Any

import orjson

from lakestream_localkinesis.core.shard import Shard
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.core.subscription import Subscription

Answer = dict[str, Any] | bytes | Subscription
"""The output of an operation in the API's own field names, that as ready JSON, or what is pushed from now on.

Blobs are base64 text and times are seconds, as in JSON 1.1; `wire` makes CBOR of it.
"""


def seconds(milliseconds: int) -> float:
    """A time as the API shows it."""
    return milliseconds / 1000


def hash_key_range(shard: Shard) -> dict[str, str]:
    """The API's HashKeyRange."""
    return {"StartingHashKey": str(shard.hash_range.start), "EndingHashKey": str(shard.hash_range.end)}


def describe_shard(shard: Shard) -> dict[str, Any]:
    """The API's Shard."""
    described: dict[str, Any] = {"ShardId": shard.id}
    described.update(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
    described["HashKeyRange"] = hash_key_range(shard)
    described["SequenceNumberRange"] = {"StartingSequenceNumber": str(shard.start_sequence)}
    if shard.end_sequence is not None:
        described["SequenceNumberRange"]["EndingSequenceNumber"] = str(shard.end_sequence)
    return described


def describe_identity(stream: Stream) -> dict[str, Any]:
    """What DescribeStream, its summary and ListStreams all show."""
    return {
        "StreamName": stream.name,
        "StreamARN": stream.arn,
        "StreamStatus": stream.status.value,
        "StreamModeDetails": {"StreamMode": stream.mode.value},
        "StreamCreationTimestamp": seconds(stream.created_ms),
    }


def describe_settings(stream: Stream) -> dict[str, Any]:
    """What DescribeStream and its summary show besides."""
    return {
        "RetentionPeriodHours": stream.retention_hours,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "EncryptionType": "NONE",
    }


def describe_children(stream: Stream, parent: Shard) -> list[dict[str, Any]]:
    """The API's ChildShards: where a closed shard's keys went."""
    return [
        {"ShardId": child.id, "ParentShards": list(child.parents), "HashKeyRange": hash_key_range(child)}
        for child in stream.children(parent)
    ]


def with_records(records: list[bytes], rest: dict[str, Any]) -> bytes:
    """An answer as JSON: the records are that already, and make up nearly all of it."""
    return b"".join((b'{"Records":[', b",".join(records), b"],", orjson.dumps(rest)[1:]))
