"""AddTagsToStream."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import merge_tags


def add_tags_to_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Add tags to an ACTIVE stream, or replace the values of those that are there."""
    name = fields.stream_name(account)
    tags = fields.required_tags("Tags")
    fields.check()
    stream = account.active_stream(name, now_ms)
    stream.tags = merge_tags(f"stream {name} under account {account.settings.id}", stream.tags, tags)
    return {}
