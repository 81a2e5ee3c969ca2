"""ListTagsForResource."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import tagged_resource


def list_tags_for_resource(account: Account, fields: Fields, now_ms: int) -> Answer:
    """All tags of a stream or consumer, by key."""
    resource = tagged_resource(account, fields, now_ms, to_change=False)
    return {"Tags": [{"Key": key, "Value": value} for key, value in sorted(resource.tags.items())]}
