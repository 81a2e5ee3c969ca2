"""DescribeAccountSettings."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer


def describe_account_settings(_account: Account, fields: Fields, _now_ms: int) -> Answer:
    """An account without a commitment to a throughput, as all are until they make one."""
    fields.check()
    return {"MinimumThroughputBillingCommitment": {"Status": "DISABLED"}}
