"""UntagResource."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import TAG_KEY_LENGTH, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import MOST_TAGS, check_tags, tagged_resource


def untag_resource(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Remove tags from a stream or consumer; keys that it lacks are no error."""
    keys = fields.texts("TagKeys", MOST_TAGS, 1, TAG_KEY_LENGTH)
    resource = tagged_resource(account, fields, now_ms, to_change=True)
    check_tags(keys)
    resource.tags = {key: value for key, value in resource.tags.items() if key not in keys}
    return {}
