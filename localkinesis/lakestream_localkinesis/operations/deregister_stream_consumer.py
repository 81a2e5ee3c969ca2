"""DeregisterStreamConsumer."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.registration import read_consumer


def deregister_stream_consumer(account: Account, fields: Fields, now_ms: int) -> Answer:
    """End a consumer and its subscriptions; it is DELETING for the account's transition time."""
    _, consumer = read_consumer(account, fields, "DeregisterStreamConsumer", now_ms)
    if consumer.gone_ms is None:
        consumer.gone_ms = now_ms + account.settings.transition_ms
    return {}
