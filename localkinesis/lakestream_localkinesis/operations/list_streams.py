"""ListStreams."""

from __future__ import annotations

from typing import Any

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import STREAM_NAME, Fields
from lakestream_localkinesis.operations.answer import Answer, describe_identity
from lakestream_localkinesis.operations.paging import MOST_ASKED, NEXT_TOKEN, check_age

PAGE_STREAMS = 100


def list_streams(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A page of the account's streams by name."""
    limit = min(fields.optional_integer("Limit", most=MOST_ASKED) or PAGE_STREAMS, PAGE_STREAMS)
    after = fields.optional_text("ExclusiveStartStreamName", STREAM_NAME)
    token = fields.optional_text("NextToken", NEXT_TOKEN)
    fields.check()
    if token is not None:
        after = _name_in(account, token, now_ms)
    account.settle(now_ms)
    names = sorted(name for name in account.streams if after is None or name > after)
    page = names[:limit]
    answer: dict[str, Any] = {
        "StreamNames": page,
        "HasMoreStreams": len(names) > limit,
        "StreamSummaries": [describe_identity(account.streams[name]) for name in page],
    }
    if len(names) > limit:
        answer["NextToken"] = account.sealer.seal(["streams", page[-1], now_ms])
    return answer


def _name_in(account: Account, token: str, now_ms: int) -> str:
    match account.sealer.open(token):
        case ["streams", str(name), int(at)]:
            check_age(at, now_ms)
            return name
        case _:
            raise InvalidArgumentException("NextToken is invalid.")
