"""RemoveTagsFromStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import TAG_KEY_LENGTH, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import MOST_TAGS, check_tags


def remove_tags_from_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Remove tags from an ACTIVE stream; keys that the stream lacks are no error."""
    name = fields.stream_name(account)
    keys = fields.texts("TagKeys", MOST_TAGS, 1, TAG_KEY_LENGTH)
    fields.check()
    stream = account.active_stream(name, now_ms)
    check_tags(keys)
    stream.tags = {key: value for key, value in stream.tags.items() if key not in keys}
    return {}
