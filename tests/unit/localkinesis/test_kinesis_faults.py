"""Faults, and the control endpoint that switches them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from lakestream_localkinesis.errors import SettingsError
from lakestream_localkinesis.faults import Fault, FaultKind, FaultPlan
from lakestream_localkinesis.http import Request, Response

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

SHARD = "shardId-000000000000"


@pytest.fixture
def orders(api: Api) -> Api:
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    return api


def control(api: Api, method: str, path: str, **fields: object) -> Response:
    return api.application.handle(Request(method, f"/_testing/{path}", {}, orjson.dumps(fields)))


def test_a_dropped_put_took_effect(orders: Api):
    orders.faults.add(Fault(FaultKind.DROP, frozenset({"PutRecord"}), times=1))
    dropped = orders.respond("PutRecord", StreamName="orders", Data="MQ==", PartitionKey="k")
    answered = orders.respond("PutRecord", StreamName="orders", Data="Mg==", PartitionKey="k")

    assert (dropped.drop, answered.drop) == (True, False)
    assert orders.read_all("orders", SHARD) == [b"1", b"2"]


def test_a_put_dropped_before_took_none(orders: Api):
    orders.faults.add(Fault(FaultKind.DROP_BEFORE, times=1))

    assert orders.respond("PutRecord", StreamName="orders", Data="MQ==", PartitionKey="k").drop
    assert orders.read_all("orders", SHARD) == []


def test_latency_holds_the_answer_back(orders: Api):
    orders.faults.add(Fault(FaultKind.LATENCY, latency_ms=250))

    assert orders.respond("ListStreams").delay_ms == 250


def test_an_internal_failure_has_no_effect(orders: Api):
    orders.faults.add(Fault(FaultKind.INTERNAL_FAILURE, times=2))
    for _ in range(2):
        refused = orders.refused("PutRecord", StreamName="orders", Data="", PartitionKey="k")
        assert (refused.status, refused.code) == (500, "InternalFailure")
    orders.put("orders", b"x")
    assert orders.read_all("orders", SHARD) == [b"x"]


def test_throttled_records_fail_and_the_others_do_not(orders: Api):
    orders.faults.add(Fault(FaultKind.THROTTLE, probability=0.5))
    answer = orders.put_many("orders", *((b"%d" % i, "k") for i in range(100)))
    orders.faults.clear()
    stored = [b"%d" % i for i, record in enumerate(answer["Records"]) if "SequenceNumber" in record]
    failed = [record for record in answer["Records"] if "ErrorCode" in record]

    assert answer["FailedRecordCount"] == len(failed)
    assert 20 < len(failed) < 80
    assert {record["ErrorCode"] for record in failed} == {"ProvisionedThroughputExceededException"}
    assert orders.read_all("orders", SHARD) == stored


def test_all_records_may_be_throttled(orders: Api):
    orders.faults.add(Fault(FaultKind.THROTTLE, times=3))

    assert orders.put_many("orders", *[(b"x", "k")] * 3)["FailedRecordCount"] == 3
    assert orders.put_many("orders", *[(b"x", "k")] * 3)["FailedRecordCount"] == 0


def test_throttled_calls(orders: Api):
    iterator = orders.iterator("orders", SHARD)
    orders.faults.add(Fault(FaultKind.THROTTLE, frozenset({"GetRecords", "PutRecord"})))

    assert orders.refused("GetRecords", ShardIterator=iterator).code == "ProvisionedThroughputExceededException"
    assert (
        orders.refused("PutRecord", StreamName="orders", Data="", PartitionKey="k").code
        == "ProvisionedThroughputExceededException"
    )
    assert orders.iterator("orders", SHARD)


@pytest.mark.parametrize("operation", ["ListShards", "DescribeStreamSummary"])
def test_what_tells_of_streams_is_throttled_by_the_account(orders: Api, operation: str):
    orders.faults.add(Fault(FaultKind.THROTTLE, frozenset({operation}), times=1))

    assert orders.refused(operation, StreamName="orders").code == "LimitExceededException"
    assert orders.call(operation, StreamName="orders")


def test_an_empty_page_loses_nothing(orders: Api):
    orders.put("orders", b"x")
    orders.faults.add(Fault(FaultKind.EMPTY_PAGE, times=2))
    page = orders.read(orders.iterator("orders", SHARD))
    assert (page["Records"], page["MillisBehindLatest"]) == ([], 1)
    page = orders.read(page["NextShardIterator"])
    assert page["Records"] == []
    assert orders.payloads(orders.read(page["NextShardIterator"])) == [b"x"]


def test_a_plan_is_reproducible_from_its_seed():
    def struck(seed: int) -> list[bool]:
        plan = FaultPlan(seed)
        plan.add(Fault(FaultKind.DROP, probability=0.3))
        return [plan.strikes(FaultKind.DROP, "PutRecords") is not None for _ in range(50)]

    assert struck(1) == struck(1) != struck(2)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"probability": 0.0}, "probability"),
        ({"probability": 1.1}, "probability"),
        ({"times": 0}, "times"),
        ({"latency_ms": 5}, "latency_ms"),
        ({"stale_ms": 5}, "stale_ms"),
    ],
)
def test_faults_that_make_no_sense(fields: dict, named: str):
    with pytest.raises(SettingsError, match=named):
        Fault(FaultKind.DROP, **fields)


def test_the_control_endpoint_drives_the_clock(api: Api):
    def clock(action: str, ms: int = 0) -> int:
        return orjson.loads(control(api, "POST", "clock", action=action, ms=ms).body)["now_ms"]

    start = api.clock.now_ms()
    assert clock("advance", 1500) == start + 1500
    assert clock("set", start + 9000) == start + 9000
    assert clock("resume") >= start + 9000
    frozen = clock("freeze")
    assert orjson.loads(control(api, "GET", "clock").body) == {"now_ms": frozen}


@pytest.mark.parametrize(
    ("method", "path", "fields", "named"),
    [
        ("POST", "clock", {"action": "advance", "ms": -1}, "only goes forward"),
        ("POST", "clock", {"action": "stop"}, "action"),
        ("POST", "clock", {}, "action"),
        ("POST", "clock", {"action": "advance", "ms": 0.5}, "ms: 0.5 is no whole number"),
        ("POST", "clock", {"action": "set", "ms": 1.8e12}, "ms: 1800000000000.0 is no whole number"),
        ("POST", "clock", {"action": "advance", "ms": True}, "ms: True is no whole number"),
        ("POST", "clock", {"action": "advance", "ms": 10**17}, "4000"),
        ("POST", "faults", {"kind": "drop", "times": 0}, "times"),
        ("POST", "faults", {"kind": "fire"}, "fire"),
        ("POST", "faults", {"kind": "drop", "sometimes": 1}, "sometimes"),
        ("POST", "faults", {"kind": "drop", "operations": ["PutRecrods"]}, "PutRecrods"),
        ("POST", "faults", {"kind": "drop", "operations": "PutRecords"}, "operations: 'PutRecords' is no list"),
        ("POST", "faults", {"kind": "drop", "operations": [["PutRecords"]]}, "is no list"),
        (
            "POST",
            "faults",
            {"kind": "throttle", "operations": ["SplitShard"]},
            "GetRecords, GetShardIterator, ListShards, ListStreams, PutRecord",
        ),
        ("POST", "faults", {"kind": "empty_page", "operations": ["PutRecords"]}, "GetRecords"),
        ("POST", "faults", {"kind": "stale", "stale_ms": 1, "operations": ["DescribeStream"]}, "ListShards"),
        ("POST", "faults", {"kind": "stale"}, "stale_ms: 0"),
        ("POST", "faults", {"kind": "stale", "stale_ms": 86_400_001}, "86400000"),
        ("POST", "streams", {"name": "orders", "shards": 0}, "shards: 0"),
        ("POST", "streams", {"name": "orders", "shards": -3}, "shards: -3"),
        ("POST", "streams", {"name": "orders", "shards": 1.5}, "shards: 1.5"),
        ("POST", "streams", {"name": "", "shards": 1}, "name: ''"),
        ("POST", "streams", {"name": "a b", "shards": 1}, "name: 'a b'"),
        ("POST", "streams", {"name": 5, "shards": 1}, "name: 5"),
        ("GET", "records/none", {}, "none"),
        ("GET", "nothing", {}, "nothing"),
    ],
)
def test_control_commands_that_are_refused(api: Api, method: str, path: str, fields: dict, named: str):
    response = control(api, method, path, **fields)

    assert response.status == 400
    assert named in response.body.decode()
    assert api.call("ListStreams")["StreamNames"] == []
    assert not api.faults.any()


def test_a_throttle_may_be_of_requests_that_it_does_not_befall_as_well(api: Api):
    assert control(api, "POST", "faults", kind="throttle", operations=["SplitShard", "PutRecords"]).status == 200
