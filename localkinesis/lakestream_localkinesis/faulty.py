"""An operation under faults that change its outcome."""

from __future__ import annotations

from typing import Any

import orjson

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.errors import (
    InternalFailure,
    LimitExceededException,
    ProvisionedThroughputExceededException,
    SettingsError,
)
from lakestream_localkinesis.faults import Fault, FaultKind, FaultPlan
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations import OPERATIONS
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.get_records import empty_page
from lakestream_localkinesis.operations.list_shards import list_shards
from lakestream_localkinesis.operations.put_records import put_records

_THROTTLED = frozenset({"PutRecord", "GetRecords", "GetShardIterator"})
"""Operations that Kinesis throttles as a whole, by what a shard takes and gives."""
_LIMITED = frozenset({"DescribeStream", "DescribeStreamSummary", "ListShards", "ListStreams"})
"""Those that tell of streams, which it throttles by calls a second of the account."""

_BEFALLEN = {
    FaultKind.THROTTLE: _THROTTLED | _LIMITED | {"PutRecords"},
    FaultKind.EMPTY_PAGE: frozenset({"GetRecords"}),
    FaultKind.STALE: frozenset({"ListShards"}),
}
"""Of other kinds: every operation."""


def check_operations(fault: Fault) -> None:
    """Refuse a fault that would befall nothing: whoever asks for it would take what they test for tested.

    Raises:
        SettingsError: it names an operation that there is not, or only such as faults of its kind do not befall.
    """
    unknown = sorted(fault.operations - OPERATIONS.keys())
    if unknown:
        raise SettingsError(f"operations: there is no {', '.join(unknown)}")
    befallen = _BEFALLEN.get(fault.kind, OPERATIONS.keys())
    if fault.operations and fault.operations.isdisjoint(befallen):
        raise SettingsError(f"operations: a fault of kind {fault.kind} befalls {', '.join(sorted(befallen))} alone")


def execute_with_faults(plan: FaultPlan, operation: str, account: Account, fields: Fields, now_ms: int) -> Answer:
    """Execute an operation, unless a fault befalls it."""
    if plan.strikes(FaultKind.INTERNAL_FAILURE, operation):
        raise InternalFailure("The request processing has failed because of an unknown error, exception or failure.")
    if operation == "PutRecords":
        return _put_records(plan, account, fields, now_ms)
    if operation in _THROTTLED and plan.strikes(FaultKind.THROTTLE, operation):
        raise ProvisionedThroughputExceededException(_message(account))
    if operation in _LIMITED and plan.strikes(FaultKind.THROTTLE, operation):
        raise LimitExceededException(f"Rate exceeded for account {account.settings.id} (a fault that is switched on).")
    if operation == "GetRecords" and plan.strikes(FaultKind.EMPTY_PAGE, operation):
        return empty_page(account, fields, now_ms)
    if operation == "ListShards" and fields.values.get("NextToken") is None:
        stale = plan.strikes(FaultKind.STALE, operation)
        return list_shards(account, fields, now_ms, now_ms - stale.stale_ms if stale else None)
    return OPERATIONS[operation](account, fields, now_ms)


def _put_records(plan: FaultPlan, account: Account, fields: Fields, now_ms: int) -> Answer:
    """Hold back the records that are befallen, put the others, and answer in the order of the request."""
    members = fields.values.get("Records") or []
    throttled = [plan.strikes(FaultKind.THROTTLE, "PutRecords") is not None for _ in members]
    if not any(throttled):
        return put_records(account, fields, now_ms)
    passed = [member for member, held in zip(members, throttled, strict=True) if not held]
    answer: dict[str, Any] = {"FailedRecordCount": 0, "Records": [], "EncryptionType": "NONE"}
    if passed:
        answer = orjson.loads(put_records(account, Fields({**fields.values, "Records": passed}), now_ms))
    failure = {"ErrorCode": ProvisionedThroughputExceededException.__name__, "ErrorMessage": _message(account)}
    results = iter(answer["Records"])
    answer["Records"] = [failure if held else next(results) for held in throttled]
    answer["FailedRecordCount"] += sum(throttled)
    return answer


def _message(account: Account) -> str:
    return f"Rate exceeded for a shard under account {account.settings.id} (a fault that is switched on)."
