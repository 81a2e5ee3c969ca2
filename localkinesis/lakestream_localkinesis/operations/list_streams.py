"""ListStreams."""

from __future__ import annotations

from typing import Any

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import STREAM_NAME, Fields, Text
from lakestream_localkinesis.operations.answer import Answer, describe_identity

PAGE_STREAMS = 100
MOST_ASKED = 10_000
"""More may be asked for than a page has."""
NEXT_TOKEN = Text(shortest=1, longest=1_048_576)


def list_streams(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A page of the account's streams by name."""
    limit = min(fields.optional_integer("Limit", most=MOST_ASKED) or PAGE_STREAMS, PAGE_STREAMS)
    after = fields.optional_text("ExclusiveStartStreamName", STREAM_NAME)
    token = fields.optional_text("NextToken", NEXT_TOKEN)
    fields.check()
    if token is not None:
        after = _name_in(account, token)
    account.settle(now_ms)
    names = sorted(name for name in account.streams if after is None or name > after)
    page = names[:limit]
    answer: dict[str, Any] = {
        "StreamNames": page,
        "HasMoreStreams": len(names) > limit,
        "StreamSummaries": [describe_identity(account.streams[name]) for name in page],
    }
    if len(names) > limit:
        answer["NextToken"] = account.sealer.seal(["streams", page[-1]])
    return answer


def _name_in(account: Account, token: str) -> str:
    match account.sealer.open(token):
        case ["streams", str(name)]:
            return name
        case _:
            raise InvalidArgumentException("NextToken is invalid.")
