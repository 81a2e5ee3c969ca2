"""SubscribeToShard."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.core.consumer import ConsumerStatus
from lakestream_localkinesis.core.subscription import HELD_MS, Subscription
from lakestream_localkinesis.errors import DryRunOperationException, ResourceInUseException
from lakestream_localkinesis.fields import SEQUENCE_NUMBER, SHARD_ID, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.position import POSITION_TYPE, Position
from lakestream_localkinesis.operations.registration import CONSUMER_ARN, find_consumer, stream_of_consumer


def subscribe_to_shard(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Push a shard's records to a consumer for five minutes.

    Within five seconds of a subscription another one is refused; later it takes over.
    """
    resource = fields.resource("ConsumerARN", CONSUMER_ARN, account)
    arn = fields.text("ConsumerARN", CONSUMER_ARN)
    shard_name = fields.text("ShardId", SHARD_ID)
    start = fields.required_structure("StartingPosition")
    position = Position(
        start.text("Type", POSITION_TYPE),
        start.optional_text("SequenceNumber", SEQUENCE_NUMBER),
        start.timestamp_ms("Timestamp"),
    )
    dry_run = fields.boolean("DryRun")
    fields.check()
    stream = account.data_stream(stream_of_consumer(resource or "") or "", now_ms)
    consumer = find_consumer(account, stream, arn)
    if consumer.status(now_ms) is not ConsumerStatus.ACTIVE:
        raise ResourceInUseException(f"Consumer {arn} is not ACTIVE, instead in state {consumer.status(now_ms)}")
    shard = find_shard(account, stream, shard_name)
    cursor = position.cursor(account, stream, shard, now_ms)
    latest = consumer.subscriptions.get(shard.index)
    if latest and now_ms < latest.opened_ms + HELD_MS:
        raise ResourceInUseException(f"Consumer {arn} has subscribed to shard {shard.id} less than 5 seconds ago.")
    if dry_run:
        raise DryRunOperationException
    subscription = Subscription(stream, consumer, shard, cursor, now_ms)
    consumer.subscriptions[shard.index] = subscription
    return subscription
