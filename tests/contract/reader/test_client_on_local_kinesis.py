"""The HTTP client: endpoints, credentials, Kinesis's own limits, and the executors' entry point."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakestream.errors import KinesisRejectedError, KinesisUnavailableError, SettingsError
from lakestream.kinesis import HttpKinesisClient, KinesisSettings, PlannerSettings, read_ranges
from lakestream.testing.consumer import Consume, Consumer
from lakestream.testing.kpl import aggregate
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


def test_no_credentials(server: LocalKinesis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SettingsError, match="no AWS credentials: set AWS_ACCESS_KEY_ID"):
        HttpKinesisClient(KinesisSettings("any", server.region, server.endpoint))


def test_nobody_listens(consume: Consume) -> None:
    client = HttpKinesisClient(KinesisSettings("any", "eu-west-1", "http://127.0.0.1:9", patience=0.2))
    with pytest.raises(KinesisUnavailableError, match=r"DescribeStreamSummary on http://127\.0\.0\.1:9/"):
        client.describe_stream_summary()
    client.close()


def test_a_request_that_kinesis_refuses(server: LocalKinesis, consume: Consume) -> None:
    server.create_stream("refusing")
    client = consume("refusing").client
    with pytest.raises(KinesisRejectedError):
        client.get_records("not an iterator", 1)


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
