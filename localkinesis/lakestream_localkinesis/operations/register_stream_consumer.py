"""RegisterStreamConsumer."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.consumer import MOST_CONSUMERS, MOST_CREATING, Consumer, ConsumerStatus
from lakestream_localkinesis.errors import LimitExceededException, ResourceInUseException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.registration import CONSUMER_NAME, describe_consumer
from lakestream_localkinesis.operations.tagging import merge_tags


def register_stream_consumer(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Register a consumer; it is CREATING for the account's transition time."""
    stream_name = fields.required_stream_of_arn(account)
    name = fields.text("ConsumerName", CONSUMER_NAME)
    tags = fields.tags("Tags") or {}
    fields.check()
    stream = account.active_stream(stream_name, now_ms)
    where = f"stream {stream_name} under account {account.settings.id}"
    if name in stream.consumers:
        raise ResourceInUseException(f"Consumer {name} of {where} already exists.")
    creating = sum(c.status(now_ms) is ConsumerStatus.CREATING for c in stream.consumers.values())
    if creating >= MOST_CREATING:
        raise LimitExceededException(f"{creating} consumers of {where} are CREATING, which is the limit.")
    if len(stream.consumers) >= MOST_CONSUMERS:
        raise LimitExceededException(f"{MOST_CONSUMERS} consumers are registered with {where}, which is the limit.")
    arn = f"{stream.arn}/consumer/{name}:{now_ms // 1000}"
    tagged = merge_tags(f"consumer {name} of {where}", {}, tags)
    consumer = Consumer(name, arn, now_ms, now_ms + account.settings.transition_ms, tagged)
    stream.consumers[name] = consumer
    return {"Consumer": describe_consumer(consumer, now_ms)}
