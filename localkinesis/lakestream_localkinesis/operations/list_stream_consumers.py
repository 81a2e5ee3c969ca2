"""ListStreamConsumers."""

from __future__ import annotations

from typing import Any

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.paging import MOST_ASKED, NEXT_TOKEN, check_age
from lakestream_localkinesis.operations.registration import describe_consumer

DEFAULT_CONSUMERS = 100


def list_stream_consumers(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A page of a stream's consumers by name."""
    name = fields.required_stream_of_arn(account)
    limit = fields.optional_integer("MaxResults", most=MOST_ASKED) or DEFAULT_CONSUMERS
    token = fields.optional_text("NextToken", NEXT_TOKEN)
    created_ms = fields.timestamp_ms("StreamCreationTimestamp")
    fields.check()
    stream = account.stream(name, now_ms)
    account.admit_to(stream, "ListStreamConsumers", now_ms)
    if created_ms is not None and token is not None:
        raise InvalidArgumentException("NextToken and StreamCreationTimestamp cannot be provided together.")
    # As in ListShards, the API takes seconds.
    if created_ms is not None and created_ms // 1000 != stream.created_ms // 1000:
        raise account.not_found(name)
    after = "" if token is None else _name_in(account, stream.id, token, now_ms)
    names = sorted(consumer for consumer in stream.consumers if consumer > after)
    page = names[:limit]
    answer: dict[str, Any] = {"Consumers": [describe_consumer(stream.consumers[one], now_ms) for one in page]}
    if len(names) > limit:
        answer["NextToken"] = account.sealer.seal(["consumers", stream.id, page[-1], now_ms])
    return answer


def _name_in(account: Account, stream_id: str, token: str, now_ms: int) -> str:
    match account.sealer.open(token):
        case ["consumers", str(ident), str(name), int(at)] if ident == stream_id:
            check_age(at, now_ms)
            return name
        case _:
            raise InvalidArgumentException("NextToken is invalid.")
