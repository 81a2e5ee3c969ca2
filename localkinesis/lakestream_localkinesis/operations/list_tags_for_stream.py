"""ListTagsForStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import TAG_KEY_LENGTH, Fields, Text
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import MOST_TAGS

TAG_KEY = Text(shortest=1, longest=TAG_KEY_LENGTH)


def list_tags_for_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A page of a stream's tags by key."""
    name = fields.stream_name(account)
    after = fields.optional_text("ExclusiveStartTagKey", TAG_KEY)
    limit = fields.optional_integer("Limit", most=MOST_TAGS) or MOST_TAGS
    fields.check()
    stream = account.stream(name, now_ms)
    keys = sorted(key for key in stream.tags if after is None or key > after)
    return {
        "Tags": [{"Key": key, "Value": stream.tags[key]} for key in keys[:limit]],
        "HasMoreTags": len(keys) > limit,
    }
