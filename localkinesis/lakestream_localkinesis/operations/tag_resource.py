"""TagResource."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import merge_tags, tagged_resource


def tag_resource(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Add tags to a stream or consumer, or replace the values of those that are there."""
    tags = fields.required_tags("Tags")
    resource = tagged_resource(account, fields, now_ms, to_change=True)
    resource.tags = merge_tags(resource.arn, resource.tags, tags)
    return {}
