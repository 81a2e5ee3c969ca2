"""RemoveTagsFromStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import SerializationException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import MOST_TAGS, check_tags


def remove_tags_from_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Remove tags; keys that the stream lacks are no error."""
    name = fields.stream_name()
    keys = fields.items("TagKeys", MOST_TAGS)
    fields.check()
    if not all(isinstance(key, str) for key in keys):
        raise SerializationException("TagKeys: a value that is not text can not be converted to an String")
    check_tags(keys)
    stream = account.stream(name, now_ms)
    stream.tags = {key: value for key, value in stream.tags.items() if key not in keys}
    return {}
