"""CreateStream: provisioned with a shard count, or on demand."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.ondemand import INITIAL_SHARDS
from lakestream_localkinesis.core.stream import RecordDistribution, StreamMode
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import STREAM_NAME, Fields, Text
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import MOST_TAGS, check_tags

MODE = Text(choices=tuple(StreamMode))
DISTRIBUTION = Text(choices=tuple(RecordDistribution))
RECORD_KIB = MIB // 1024


def create_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Create a stream; it is CREATING for the account's transition time."""
    name = fields.text("StreamName", STREAM_NAME)
    count = fields.optional_integer("ShardCount", most=100_000)
    tags = fields.tags("Tags", MOST_TAGS)
    details = fields.structure("StreamModeDetails")
    mode = StreamMode(details.text("StreamMode", MODE)) if details else StreamMode.PROVISIONED
    record_kib = fields.optional_integer("MaxRecordSizeInKiB", RECORD_KIB, 10 * RECORD_KIB)
    strategy = fields.optional_text("RecordDistributionStrategy", DISTRIBUTION)
    fields.check()
    check_tags(tags)
    if record_kib not in (None, RECORD_KIB):
        raise InvalidArgumentException(f"MaxRecordSizeInKiB: only {RECORD_KIB} is supported here, not {record_kib}.")
    if mode is StreamMode.ON_DEMAND:
        if count is not None:
            raise InvalidArgumentException("ShardCount must not be specified for streams in ON_DEMAND mode.")
        count = INITIAL_SHARDS
    if count is None:
        raise InvalidArgumentException("ShardCount is required for streams in PROVISIONED mode.")
    distribution = RecordDistribution(strategy or RecordDistribution.USER_PARTITION_KEY)
    check_distribution(name, mode, distribution)
    stream = account.create(name, mode, count, tags, now_ms)
    stream.distribution = distribution
    return {}


def check_distribution(name: str, mode: StreamMode, distribution: RecordDistribution) -> None:
    """Refuse AUTO for a provisioned stream."""
    if distribution is RecordDistribution.AUTO and mode is StreamMode.PROVISIONED:
        raise InvalidArgumentException(
            f"Stream {name}: RecordDistributionStrategy AUTO is only supported for streams in ON_DEMAND mode."
        )
