"""The HTTP client: endpoints, credentials, Kinesis's own limits, and the executors' entry point."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from answers import Answers, answering, serving

from lakestream.errors import (
    KinesisAnswerError,
    KinesisDeniedError,
    KinesisRejectedError,
    KinesisUnavailableError,
    RetryLaterError,
    SettingsError,
)
from lakestream.kinesis import HttpKinesisClient, KinesisSettings, PlannerSettings, RangeReader, read_ranges
from lakestream.kinesis.connections import Connections, Response
from lakestream.model import ShardRange, after, at
from lakestream.testing.consumer import Consume, Consumer
from lakestream.testing.kpl import aggregate
from lakestream.testing.logs import ManualClock
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_KINESIS", "AWS_ENDPOINT_URL"])
def test_the_endpoint_of_the_environment(
    server: LocalKinesis, consume: Consume, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    server.create_stream(f"by-{variable}")
    monkeypatch.setenv(variable, server.endpoint)
    client = HttpKinesisClient(KinesisSettings(f"by-{variable}", server.region))
    assert client.describe_stream_summary().arn.endswith(f"stream/by-{variable}")
    client.close()


def test_a_stream_of_another_account_is_read_by_its_arn_alone(
    server: LocalKinesis, consume: Consume, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.create_stream("theirs", shards=2)
    local = server.client()
    arn = local.describe_stream_summary(StreamName="theirs")["StreamDescriptionSummary"]["StreamARN"]
    asked: list[tuple[str, dict[str, Any]]] = []
    post = Connections.post

    def told(self: Connections, headers: Mapping[str, str], body: bytes) -> Response:
        asked.append((headers["x-amz-target"].rpartition(".")[2], json.loads(body)))
        return post(self, headers, body)

    monkeypatch.setattr(Connections, "post", told)
    consumer = consume("theirs", account=arn.split(":")[4])
    for number in range(40):
        local.put_record(StreamName="theirs", Data=b"%d" % number, PartitionKey=str(number))
    consumer.client.update_shard_count(4)
    for number in range(40):
        local.put_record(StreamName="theirs", Data=b"%d" % number, PartitionKey=str(number))
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records("theirs"))
    operations = {"DescribeStreamSummary", "ListShards", "GetShardIterator", "GetRecords", "UpdateShardCount"}
    assert {operation for operation, _ in asked} == operations
    assert {request.get("StreamARN") for _, request in asked} == {arn}
    assert not any("StreamName" in request for _, request in asked)


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_a_stream_of_another_account_that_does_not_let_us_read(consume: Consume, region: str, partition: str) -> None:
    with local_kinesis(region=region) as theirs:
        theirs.create_stream("theirs")
        settings = KinesisSettings("theirs", region, theirs.endpoint, account="111122223333")
        client = HttpKinesisClient(settings)
        with pytest.raises(KinesisDeniedError, match=f"arn:{partition}:kinesis:{region}:111122223333:stream/theirs"):
            client.list_shards()
        client.close()


def test_a_region_that_is_in_no_partition(consume: Consume) -> None:
    with pytest.raises(SettingsError, match="no ARN of a stream in region 'xx-foo-1': Unknown region"):
        HttpKinesisClient(KinesisSettings("theirs", "xx-foo-1", "http://127.0.0.1:9", account="111122223333"))


@pytest.mark.parametrize("port", ["99999", "kinesis"])
def test_a_port_of_the_environment_that_is_none(consume: Consume, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KINESIS", f"http://127.0.0.1:{port}")
    with pytest.raises(SettingsError, match="no endpoint for Kinesis in region 'eu-west-1': Port "):
        HttpKinesisClient(KinesisSettings("any", "eu-west-1"))


def test_no_credentials(server: LocalKinesis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SettingsError, match="no AWS credentials: set AWS_ACCESS_KEY_ID"):
        HttpKinesisClient(KinesisSettings("any", server.region, server.endpoint))


def test_tls_by_the_certificates_of_the_environment(
    server: LocalKinesis, consume: Consume, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with local_kinesis(tls=tmp_path) as secure:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "tls.crt"))
        secure.create_stream("secret", shards=1)
        settings = KinesisSettings("secret", secure.region, secure.endpoint, patience=0.2)
        client = HttpKinesisClient(settings)
        for _ in range(2):  # the second over the connection of the first
            assert client.describe_stream_summary().arn.endswith("stream/secret")
        client.close()
        monkeypatch.delenv("AWS_CA_BUNDLE")
        stranger = HttpKinesisClient(settings)
        with pytest.raises(KinesisUnavailableError, match="self-signed certificate"):
            stranger.describe_stream_summary()
        stranger.close()


def test_certificates_that_are_not_there(
    server: LocalKinesis, consume: Consume, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/no/such/file.pem")
    with pytest.raises(SettingsError, match=r"AWS_CA_BUNDLE .*/no/such/file\.pem: .*No such file"):
        HttpKinesisClient(KinesisSettings("any", server.region, "https://127.0.0.1:9"))


def test_nobody_listens(consume: Consume) -> None:
    client = HttpKinesisClient(KinesisSettings("any", "eu-west-1", "http://127.0.0.1:9", patience=0.2))
    with pytest.raises(KinesisUnavailableError, match=r"DescribeStreamSummary on http://127\.0\.0\.1:9/"):
        client.describe_stream_summary()
    client.close()


HTML = b"<html>Please log in</html>"
EMPTY_PAGE = b'{"Records":[],"NextShardIterator":"A","MillisBehindLatest":0}'


def test_answers_of_something_else(consume: Consume) -> None:
    """A page of a proxy may pass as any outage does; what is an answer but no sensible one is soon believed."""

    def client_of(url: str) -> HttpKinesisClient:
        # Patience is with the pauses between answers here, however long these take themselves.
        settings, clock = KinesisSettings("any", "eu-west-1", url, patience=1.0), ManualClock()
        return HttpKinesisClient(settings, sleep=clock.advance, monotonic=clock.monotonic)

    with answering(HTML, EMPTY_PAGE[:-1], b"{}", EMPTY_PAGE) as url:
        assert len(client_of(url).get_records("A", 1)) == 0
    with answering(HTML) as url, pytest.raises(KinesisUnavailableError, match=r"GetRecords on http://.*Please log in"):
        client_of(url).get_records("A", 1)
    with answering(b"{}") as url, pytest.raises(KinesisAnswerError, match=r"'Records' is missing.*endpoint.*proxy"):
        client_of(url).get_records("A", 1)


@contextmanager
def ahead_by(minutes: int) -> Iterator[str]:
    """The URL of a server whose clock is ahead, and which refuses signatures of another time, as AWS does."""

    class Handler(Answers):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(time.time() + 60 * minutes)

        def reply(self) -> None:
            signed = datetime.strptime(f"{self.headers['X-Amz-Date']}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
            is_in_time = abs(time.time() + 60 * minutes - signed) < 300
            self.answer(*(200, EMPTY_PAGE) if is_in_time else (400, EXPIRED))

    with serving(Handler) as url:
        yield url


EXPIRED = b'{"__type":"InvalidSignatureException","message":"Signature expired: 20260131T120000Z is now earlier than"}'


def test_a_clock_that_is_wrong_does_not_keep_a_driver_from_reading(consume: Consume) -> None:
    clock = ManualClock()
    with ahead_by(12) as url:
        settings = KinesisSettings("any", "eu-west-1", url, patience=10.0)
        client = HttpKinesisClient(settings, sleep=clock.advance, monotonic=clock.monotonic)
        assert len(client.get_records("A", 1)) == 0
        client.close()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(503, b"no healthy upstream", id="a sidecar"),
        pytest.param(504, b'{"message":"Endpoint request timed out"}', id="a gateway"),
        pytest.param(200, HTML, id="a page to log in"),
    ],
)
def test_the_time_is_told_by_kinesis_alone(consume: Consume, status: int, body: bytes) -> None:
    """Whatever stands before it has a clock of its own."""
    left = [(status, body, 3600), (200, EMPTY_PAGE, 0)]

    class Handler(Answers):
        ahead = 0

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(NOON + self.ahead)

        def reply(self) -> None:
            # Before it is answered: then the next request may come at once, to another thread.
            status, body, self.ahead = left.pop(0)
            self.answer(status, body)

    clock = ManualClock()
    with serving(Handler) as url:
        settings = KinesisSettings("any", "eu-west-1", url, patience=10.0)
        client = HttpKinesisClient(settings, sleep=clock.advance, monotonic=clock.monotonic)
        assert len(client.get_records("A", 1)) == 0
        assert client.now().timestamp() == NOON
        client.close()
    assert not left, "both were read"


@pytest.mark.parametrize("date", ["", "now", "Sat, 31 Jan 2026 99999999999999999999:00:00 GMT"])
def test_a_date_that_is_none_tells_no_time(date: str, consume: Consume) -> None:
    class Handler(Answers):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return date

        def reply(self) -> None:
            self.answer(200, EMPTY_PAGE)

    with serving(Handler) as url:
        client = HttpKinesisClient(KinesisSettings("any", "eu-west-1", url))
        assert len(client.get_records("A", 1)) == 0
        client.close()


def test_a_page_by_what_stands_before_kinesis_is_no_order_of_shards(consume: Consume) -> None:
    left = [(200, HTML), (200, b'{"StreamName":"any","CurrentShardCount":1,"TargetShardCount":2}')]

    class Handler(Answers):
        def reply(self) -> None:
            self.answer(*left.pop(0))

    with serving(Handler) as url:
        client = HttpKinesisClient(KinesisSettings("any", "eu-west-1", url))
        with pytest.raises(KinesisUnavailableError, match=r"UpdateShardCount on .*: no JSON: "):
            client.update_shard_count(2)
        client.update_shard_count(2)
        client.close()


NOON = 1_769_860_800


def test_a_request_that_kinesis_refuses(server: LocalKinesis, consume: Consume) -> None:
    server.create_stream("refusing")
    client = consume("refusing").client
    with pytest.raises(KinesisRejectedError):
        client.get_records("not an iterator", 1)


def test_a_listing_that_was_held_up_between_two_pages_begins_anew(consume: Consume) -> None:
    """A token is good for five minutes, of which a machine that was frozen knows nothing."""
    shard = (
        b'{"ShardId":"shardId-000000000000","HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"1"},'
        b'"SequenceNumberRange":{"StartingSequenceNumber":"1"}}'
    )
    first, last = b'{"Shards":[%b],"NextToken":"T"}' % shard, b'{"Shards":[%b]}' % shard.replace(b"00000", b"00001", 1)
    expired = b'{"__type":"ExpiredNextTokenException","message":"The pagination token has expired."}'
    left = [(200, first), (400, expired), (200, first), (200, last)]

    class Handler(Answers):
        def reply(self) -> None:
            self.answer(*left.pop(0) if left else (400, expired))

    clock = ManualClock()
    with serving(Handler) as url:
        settings = KinesisSettings("any", "eu-west-1", url, patience=10.0)
        client = HttpKinesisClient(settings, sleep=clock.advance, monotonic=clock.monotonic)
        assert len(client.list_shards()) == 2
        left.append((200, first))
        with pytest.raises(RetryLaterError, match="ExpiredNextToken"):
            client.list_shards()
        client.close()


def test_the_time_is_told_between_whole_seconds(server: LocalKinesis, consume: Consume) -> None:
    """Each answer of a driver with a batch a second comes at the same part of a second."""
    server.create_stream("told", shards=1)
    server.clock.freeze()
    server.clock.advance(1.9 - server.clock.now().microsecond / 1e6)
    settings, local = KinesisSettings("told", server.region, server.endpoint), ManualClock()
    client = HttpKinesisClient(settings, monotonic=local.monotonic)
    [shard] = client.list_shards()
    assert server.clock.now() - client.now() > timedelta(seconds=0.8)
    server.client().put_record(StreamName="told", Data=b"{}", PartitionKey="k")
    client.get_records(client.get_shard_iterator(shard.shard_id, None), 1)
    assert abs(server.clock.now() - client.now()) <= timedelta(milliseconds=2)
    client.close()
    server.clock.resume()


def test_a_time_that_another_server_has_not_come_to_yet_is_waited_for(server: LocalKinesis, consume: Consume) -> None:
    """Kinesis has many, whose clocks are milliseconds apart: one tells the time, and the next is asked for it."""
    server.create_stream("apart", shards=1)
    server.clock.freeze()
    server.clock.advance(2 - server.clock.now().microsecond / 1e6)
    local = ManualClock()

    def sleep(seconds: float) -> None:
        local.advance(seconds)
        server.clock.advance(seconds)

    settings = KinesisSettings("apart", server.region, server.endpoint, patience=10.0)
    client = HttpKinesisClient(settings, sleep=sleep, monotonic=local.monotonic)
    [shard] = client.list_shards()
    local.advance(0.3)
    assert client.get_shard_iterator(shard.shard_id, client.now())
    client.close()
    server.clock.resume()


@contextmanager
def full_shard() -> Iterator[tuple[LocalKinesis, HttpKinesisClient, ManualClock, list[float]]]:
    """24 records of 900 kB in one shard, within Kinesis's limits, and a client whose waits are written down."""
    with local_kinesis() as limited:
        limited.create_stream("full", shards=1)
        limited.clock.freeze()
        for number in range(24):
            limited.client().put_record(StreamName="full", Data=bytes(900_000), PartitionKey=f"{number}")
            limited.clock.advance(1.0)
        waits: list[float] = []
        local = ManualClock()

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            limited.clock.advance(seconds)
            local.advance(seconds)

        settings = KinesisSettings("full", limited.region, limited.endpoint)
        client = HttpKinesisClient(settings, sleep=sleep, monotonic=local.monotonic)
        # By chance waits are shorter, and more of them: their sum is another one each time.
        client._backoff.uniform = lambda _, most: most
        yield limited, client, local, waits
        client.close()


BLOCKED = 11 * 900_000 / 2**21
"""Seconds after a page of eleven such records. A wait that grows by chance would take a third more."""


def test_a_full_shard_is_asked_when_it_gives_again(consume: Consume) -> None:
    with full_shard() as (_, client, _, waits):
        [shard] = client.list_shards()
        iterator, read = client.get_shard_iterator(shard.shard_id, None), 0
        while read < 24:
            page = client.get_records(iterator, 10_000)
            read += len(page)
            assert page.next_iterator is not None
            iterator = page.next_iterator
    assert sum(waits) == pytest.approx(2 * BLOCKED, abs=0.5)
    assert len(waits) <= 4


def test_a_range_older_than_a_day_is_read_as_quickly(consume: Consume) -> None:
    """Whether trimming overtakes it, as retention may have been lowered, is asked when the shard gives again, too."""
    with full_shard() as (limited, client, local, waits):
        limited.client().increase_stream_retention_period(StreamName="full", RetentionPeriodHours=168)
        records = list(limited.records("full"))
        limited.clock.advance(30 * 3600)
        numbers = [int(record.sequence_number) for record in records]
        begin, end = at(numbers[0]), after(numbers[-1])
        times = records[0].arrival, records[-1].arrival
        piece = ShardRange(records[0].shard_id, begin, end, numbers[0], *times, False, 24, 0)
        settings = KinesisSettings("full", limited.region, limited.endpoint, retention=timedelta(days=7))
        reader = RangeReader(client, settings, sleep=local.advance, monotonic=local.monotonic)
        assert sum(part.num_rows for part in reader.read(piece) if isinstance(part, pa.RecordBatch)) == 24
    # Five calls a second are the other limit.
    assert 2 * BLOCKED - 0.5 < sum(waits) < 2.6 * BLOCKED


def test_what_an_executor_runs(server: LocalKinesis, consume: Consume) -> None:
    """Settings and ranges travel as pickles; aggregates come out unpacked."""
    both = aggregate([("k", None, b"u1"), ("k", None, b"u2")])
    server.create_stream("executors", shards=1)
    for data in (b"plain", both, both[:-1]):
        server.client().put_record(StreamName="executors", Data=data, PartitionKey="p")
    consumer = consume("executors")
    consumer.catch_up(server.clock.now())
    batches = read_ranges(*pickle.loads(pickle.dumps((consumer.settings, consumer.ranges))))
    rows = [(row["data"], row["partition_key"], row["sub_sequence"]) for b in batches for row in b.to_pylist()]
    assert rows == [(b"plain", "p", 0), (b"u1", "k", 0), (b"u2", "k", 1), (both[:-1], "p", 0)]


def test_user_records_that_belong_to_another_shard(server: LocalKinesis, consume: Consume) -> None:
    """Left out where keys decide the shard, kept where Kinesis does."""
    client = server.client()
    server.create_stream("misplaced", shards=2, on_demand=True)
    arn = client.describe_stream_summary(StreamName="misplaced")["StreamDescriptionSummary"]["StreamARN"]
    # The explicit hash keys are those of the first shard and of the second.
    client.put_record(
        StreamName="misplaced",
        Data=aggregate([("k", "0", b"u1"), ("k", str(2**128 - 1), b"u2")]),
        PartitionKey="a",
        ExplicitHashKey="0",
    )

    def read() -> list[bytes]:
        consumer = consume("misplaced")
        consumer.catch_up(server.clock.now())
        assert sum(finding.misplaced for finding in consumer.findings) == 2 - len(consumer.data)
        return consumer.data

    assert read() == [b"u1"]
    client.update_stream_record_distribution_strategy(StreamARN=arn, RecordDistributionStrategy="AUTO")
    assert read() == [b"u1", b"u2"]


def test_two_consumers_within_the_limits_of_one_shard(consume: Consume) -> None:
    """Five calls a second for both together: each is throttled by the other, and both get everything."""
    with local_kinesis() as limited:
        limited.create_stream("shared", shards=1)
        client = limited.client()
        entries = [{"Data": b"%d" % n, "PartitionKey": "k"} for n in range(500)]
        assert client.put_records(StreamName="shared", Records=entries)["FailedRecordCount"] == 0  # type: ignore[arg-type]
        settings = KinesisSettings("shared", limited.region, limited.endpoint)

        def consumer() -> Consumer:
            # Sleeps for real: the limits are per second.
            return Consumer(HttpKinesisClient(settings), settings, PlannerSettings("TRIM_HORIZON"), time.sleep)

        consumers = [consumer(), consumer()]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda c: c.catch_up(limited.clock.now()), consumers))
        for each in consumers:
            each.require_exactly(limited.records("shared"))
            each.planner.close()
            each.client.close()
