"""AddTagsToStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import MOST_TAGS, check_tags


def add_tags_to_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Add tags, or replace the values of those that are there."""
    name = fields.stream_name()
    tags = fields.tags("Tags", MOST_TAGS)
    fields.check()
    check_tags(tags)
    stream = account.stream(name, now_ms)
    tagged = {**stream.tags, **tags}
    if len(tagged) > MOST_TAGS:
        raise InvalidArgumentException(
            f"Failed to add tags to stream {name} under account {account.settings.id} because a given stream "
            f"cannot have more than {MOST_TAGS} tags associated with it."
        )
    stream.tags = tagged
    return {}
