"""DescribeStreamConsumer."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.registration import describe_consumer, read_consumer


def describe_stream_consumer(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A consumer and its stream."""
    stream, consumer = read_consumer(account, fields, "DescribeStreamConsumer", now_ms)
    return {"ConsumerDescription": {**describe_consumer(consumer, now_ms), "StreamARN": stream.arn}}
