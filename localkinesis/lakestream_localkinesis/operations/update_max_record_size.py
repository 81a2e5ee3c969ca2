"""UpdateMaxRecordSize."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.changes import SetMaxRecordBytes
from lakestream_localkinesis.core.limits import KIB
from lakestream_localkinesis.core.stream import LEAST_RECORD_KIB, MOST_RECORD_KIB
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.answer import Answer


def update_max_record_size(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Take records of up to 1 to 10 MiB from now on; those that are there stay."""
    name = fields.required_stream_of_arn(account)
    kib = fields.integer("MaxRecordSizeInKiB", LEAST_RECORD_KIB, MOST_RECORD_KIB)
    fields.check()
    stream = account.active_stream(name, now_ms)
    account.update(stream, SetMaxRecordBytes(kib * KIB), now_ms)
    return {}
