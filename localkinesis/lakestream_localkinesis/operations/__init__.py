"""The operations of the Kinesis API, one to a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.add_tags_to_stream import add_tags_to_stream
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.create_stream import create_stream
from lakestream_localkinesis.operations.decrease_stream_retention_period import decrease_stream_retention_period
from lakestream_localkinesis.operations.delete_stream import delete_stream
from lakestream_localkinesis.operations.deregister_stream_consumer import deregister_stream_consumer
from lakestream_localkinesis.operations.describe_account_settings import describe_account_settings
from lakestream_localkinesis.operations.describe_limits import describe_limits
from lakestream_localkinesis.operations.describe_stream import describe_stream
from lakestream_localkinesis.operations.describe_stream_consumer import describe_stream_consumer
from lakestream_localkinesis.operations.describe_stream_summary import describe_stream_summary
from lakestream_localkinesis.operations.get_records import get_records
from lakestream_localkinesis.operations.get_shard_iterator import get_shard_iterator
from lakestream_localkinesis.operations.increase_stream_retention_period import increase_stream_retention_period
from lakestream_localkinesis.operations.list_shards import list_shards
from lakestream_localkinesis.operations.list_stream_consumers import list_stream_consumers
from lakestream_localkinesis.operations.list_streams import list_streams
from lakestream_localkinesis.operations.list_tags_for_resource import list_tags_for_resource
from lakestream_localkinesis.operations.list_tags_for_stream import list_tags_for_stream
from lakestream_localkinesis.operations.merge_shards import merge_shards
from lakestream_localkinesis.operations.put_record import put_record
from lakestream_localkinesis.operations.put_records import put_records
from lakestream_localkinesis.operations.register_stream_consumer import register_stream_consumer
from lakestream_localkinesis.operations.remove_tags_from_stream import remove_tags_from_stream
from lakestream_localkinesis.operations.split_shard import split_shard
from lakestream_localkinesis.operations.subscribe_to_shard import subscribe_to_shard
from lakestream_localkinesis.operations.tag_resource import tag_resource
from lakestream_localkinesis.operations.untag_resource import untag_resource
from lakestream_localkinesis.operations.update_max_record_size import update_max_record_size
from lakestream_localkinesis.operations.update_shard_count import update_shard_count
from lakestream_localkinesis.operations.update_stream_mode import update_stream_mode
from lakestream_localkinesis.operations.update_stream_record_distribution_strategy import (
    update_stream_record_distribution_strategy,
)

Operation = Callable[[Account, Fields, int], Answer]
"""Account, fields of the request and the time in milliseconds to an answer; errors are raised."""

OPERATIONS: Mapping[str, Operation] = {
    "AddTagsToStream": add_tags_to_stream,
    "CreateStream": create_stream,
    "DecreaseStreamRetentionPeriod": decrease_stream_retention_period,
    "DeleteStream": delete_stream,
    "DeregisterStreamConsumer": deregister_stream_consumer,
    "DescribeAccountSettings": describe_account_settings,
    "DescribeLimits": describe_limits,
    "DescribeStream": describe_stream,
    "DescribeStreamConsumer": describe_stream_consumer,
    "DescribeStreamSummary": describe_stream_summary,
    "GetRecords": get_records,
    "GetShardIterator": get_shard_iterator,
    "IncreaseStreamRetentionPeriod": increase_stream_retention_period,
    "ListShards": list_shards,
    "ListStreamConsumers": list_stream_consumers,
    "ListStreams": list_streams,
    "ListTagsForResource": list_tags_for_resource,
    "ListTagsForStream": list_tags_for_stream,
    "MergeShards": merge_shards,
    "PutRecord": put_record,
    "PutRecords": put_records,
    "RegisterStreamConsumer": register_stream_consumer,
    "RemoveTagsFromStream": remove_tags_from_stream,
    "SplitShard": split_shard,
    "SubscribeToShard": subscribe_to_shard,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "UpdateMaxRecordSize": update_max_record_size,
    "UpdateShardCount": update_shard_count,
    "UpdateStreamMode": update_stream_mode,
    "UpdateStreamRecordDistributionStrategy": update_stream_record_distribution_strategy,
}
