"""DescribeLimits."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer


def describe_limits(account: Account, fields: Fields, now_ms: int) -> Answer:
    """The account's quotas and what of them is used."""
    fields.check()
    account.settle(now_ms)
    return {
        "ShardLimit": account.settings.shard_quota,
        "OpenShardCount": account.provisioned_shards(),
        "OnDemandStreamCount": account.on_demand_streams(),
        "OnDemandStreamCountLimit": account.settings.on_demand_quota,
    }
