"""CreateStream: provisioned with a shard count, or on demand."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.limits import KIB
from lakestream_localkinesis.core.ondemand import INITIAL_SHARDS
from lakestream_localkinesis.core.stream import LEAST_RECORD_KIB, MOST_RECORD_KIB, RecordDistribution, StreamMode
from lakestream_localkinesis.errors import InvalidArgumentException, ValidationException
from lakestream_localkinesis.fields import STREAM_NAME, Fields, Text
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.tagging import merge_tags

MODE = Text(choices=tuple(StreamMode))
DISTRIBUTION = Text(choices=tuple(RecordDistribution))


def create_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Create a stream; it is CREATING for the account's transition time.

    With neither mode nor shard count, Kinesis opens four shards (LocalStack recorded it): that is on demand.
    """
    name = fields.text("StreamName", STREAM_NAME)
    count = fields.optional_integer("ShardCount", most=100_000)
    tags = fields.tags("Tags") or {}
    details = fields.structure("StreamModeDetails")
    wanted = details.text("StreamMode", MODE) if details else None
    record_kib = fields.optional_integer("MaxRecordSizeInKiB", LEAST_RECORD_KIB, MOST_RECORD_KIB) or LEAST_RECORD_KIB
    strategy = fields.optional_text("RecordDistributionStrategy", DISTRIBUTION)
    refuse_warm_throughput(account, fields)
    fields.check()
    mode = StreamMode(wanted or (StreamMode.ON_DEMAND if count is None else StreamMode.PROVISIONED))
    if mode is StreamMode.ON_DEMAND:
        if count is not None:
            raise InvalidArgumentException("ShardCount must not be specified for streams in ON_DEMAND mode.")
        count = INITIAL_SHARDS
    if count is None:
        raise InvalidArgumentException("ShardCount is required for streams in PROVISIONED mode.")
    distribution = RecordDistribution(strategy or RecordDistribution.USER_PARTITION_KEY)
    check_distribution(name, mode, distribution)
    tagged = merge_tags(f"stream {name} under account {account.settings.id}", {}, tags)
    account.check_creating(now_ms)
    stream = account.create(name, mode, count, tagged, now_ms)
    stream.distribution = distribution
    stream.max_record_bytes = record_kib * KIB
    return {}


def refuse_warm_throughput(account: Account, fields: Fields) -> None:
    """Warm throughput is for accounts with a billing commitment, which this server's has not."""
    if fields.optional_integer("WarmThroughputMiBps", least=0) is not None:
        fields.refuse(
            ValidationException(
                "WarmThroughputMiBps requires MinimumThroughputBillingCommitment, which is not enabled for account "
                f"{account.settings.id}."
            )
        )


def check_distribution(name: str, mode: StreamMode, distribution: RecordDistribution) -> None:
    """Refuse AUTO for a provisioned stream."""
    if distribution is RecordDistribution.AUTO and mode is StreamMode.PROVISIONED:
        raise InvalidArgumentException(
            f"Stream {name}: RecordDistributionStrategy AUTO is only supported for streams in ON_DEMAND mode."
        )
