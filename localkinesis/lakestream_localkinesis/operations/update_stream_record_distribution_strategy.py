"""UpdateStreamRecordDistributionStrategy: by partition keys, or by the stream itself."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.stream import RecordDistribution
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.create_stream import DISTRIBUTION, check_distribution


def update_stream_record_distribution_strategy(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Change how an on-demand stream distributes what comes from now on; it takes effect at once."""
    name = fields.required_stream_of_arn(account)
    strategy = fields.text("RecordDistributionStrategy", DISTRIBUTION)
    fields.check()
    distribution = RecordDistribution(strategy)
    stream = account.active_stream(name, now_ms)
    check_distribution(name, stream.mode, distribution)
    stream.distribution = distribution
    return {}
