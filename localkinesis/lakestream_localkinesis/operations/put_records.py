"""PutRecords: each record succeeds or fails by itself."""

from __future__ import annotations

from typing import Any

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.hashing import key_digest
from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.shard import Arrival
from lakestream_localkinesis.core.stream import RecordDistribution
from lakestream_localkinesis.errors import (
    DryRunOperationException,
    InvalidArgumentException,
    SerializationException,
    ValidationException,
)
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations.entry import Entry, missing_keys, oversized, read_entry
from lakestream_localkinesis.operations.put_record import rate_exceeded

MOST_RECORDS = 500
MOST_BYTES = 10 * MIB


def put_records(account: Account, fields: Fields, now_ms: int) -> bytes:
    """Add up to 500 records. All are checked before the first is added: a bad one fails the request."""
    name = fields.stream_name(account)
    members = fields.items("Records", MOST_RECORDS)
    dry_run = fields.boolean("DryRun")
    fields.check()
    if not all(isinstance(member, dict) for member in members):
        raise SerializationException("Expected null")
    entries = _entries(members)
    sizes = [size for *_, size in entries]
    if sum(sizes) > MOST_BYTES:
        raise InvalidArgumentException("Records size exceeds 10 MB limit")
    stream = account.data_stream(name, now_ms)
    auto = stream.distribution is RecordDistribution.AUTO
    keyless = [place for place, entry in enumerate(entries, 1) if not entry[1]]
    if keyless and not auto:
        raise missing_keys(keyless)
    largest = max(sizes)
    if largest > stream.max_record_bytes:
        raise oversized(stream, largest, sizes.index(largest) + 1)
    if dry_run:
        raise DryRunOperationException
    failed = 0
    results: list[str] = []
    arrival = Arrival(now_ms)
    for data, key, key_json, explicit, size in entries:
        shard = stream.next_shard() if auto else stream.shard_for(explicit or key_digest(key))
        sequence = shard.append(data, key_json, size, arrival)
        if sequence is None:
            failed += 1
            results.append(_throttled(rate_exceeded(account, name, shard.id)))
        else:
            results.append(f'{{"SequenceNumber":"{sequence}","ShardId":"{shard.id}"}}')
    return f'{{"FailedRecordCount":{failed},"Records":[{",".join(results)}],"EncryptionType":"NONE"}}'.encode()


def _entries(members: list[dict[str, Any]]) -> list[Entry]:
    """All of them, or what is wrong with each."""
    entries: list[Entry] = []
    found: list[str] = []
    for place, member in enumerate(members, 1):
        try:
            entries.append(read_entry(member, place))
        except ValidationException as error:
            found += error.violations
    if found:
        raise ValidationException.of(found)
    return entries


def _throttled(message: str) -> str:
    # Neither text needs escaping.
    return f'{{"ErrorCode":"ProvisionedThroughputExceededException","ErrorMessage":"{message}"}}'
