"""The endpoints that the Kinesis suite runs against.

`LAKESTREAM_KINESIS_ENDPOINTS` (comma-separated names, default: local) chooses them: `local` is ours, `kinesis-local`
the npm package, `aws` the real service with the credentials and region of the environment (it costs a little).
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import local_kinesis

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

NPM_FOLDER = Path(__file__).parents[3] / "build/bench/npm"
READY_SECONDS = 60.0


# What kinesis-local 0.6.2 gets wrong; the marks are strict, so that a release which gets it right is noticed.
KNOWN = {
    "test_a_page_keeps_to_its_limit_and_says_that_there_is_more": "MillisBehindLatest is 0 with records left",
    "test_a_split_hands_over_to_two_children": "EndingSequenceNumber is 2^63-1, below the shard's records",
    "test_scaling_ends_with_the_shards_asked_for": "ranges are off by one",
    "test_filters_tell_old_shards_from_new": "AT_TRIM_HORIZON lists shards that were opened later",
    "test_an_impossible_split_is_refused": "a split at hash key 0 is accepted",
}


@dataclass(frozen=True)
class Endpoint:
    """A Kinesis to hold the suite against."""

    name: str
    client: KinesisClient
    pass_time: Callable[[float], object] = time.sleep
    """Let seconds pass there."""

    def await_active(self, stream: str) -> None:
        """Wait until a stream can be changed again; fails with its last status."""
        deadline = time.monotonic() + READY_SECONDS
        status = "unknown"
        while time.monotonic() < deadline:
            summary = self.client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
            status = summary["StreamStatus"]
            if status == "ACTIVE":
                return
            time.sleep(0.1)
        pytest.fail(f"{stream} is still {status} after {READY_SECONDS} s")


@pytest.fixture(autouse=True)
def known_failures(request: pytest.FixtureRequest, endpoint: Endpoint) -> None:
    """Expect what is known to fail."""
    reason = KNOWN.get(request.node.originalname)
    if endpoint.name == "kinesis-local" and reason:
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def _endpoints() -> list[object]:
    names = os.environ.get("LAKESTREAM_KINESIS_ENDPOINTS", "").split(",")
    chosen = [name for name in names if name] or ["local", "kinesis-local"]
    return [pytest.param(name, marks=pytest.mark.slow if name != "local" else ()) for name in chosen]


@pytest.fixture(scope="module", params=_endpoints())
def endpoint(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """Each endpoint in turn."""
    match request.param:
        case "local":
            with local_kinesis(limits=Limits.none()) as server:
                yield Endpoint("local", server.client(), server.clock.advance)
        case "kinesis-local":
            yield from _kinesis_local()
        case "aws":
            yield Endpoint("aws", boto3.client("kinesis", config=Config(retries={"mode": "adaptive"})))
        case unknown:
            raise ValueError(f"LAKESTREAM_KINESIS_ENDPOINTS: there is no endpoint {unknown!r}")


def _kinesis_local() -> Iterator[Endpoint]:
    contenders = pytest.importorskip("lakestream_bench._kinesis_contenders")
    try:
        contenders.install_npm_servers(NPM_FOLDER)
    except contenders.UnavailableError as error:
        pytest.skip(f"kinesis-local cannot be installed: {error}")
    with contenders.running("kinesis-local", NPM_FOLDER) as port:
        client = boto3.client(
            "kinesis",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=Config(retries={"total_max_attempts": 1}),
        )
        yield Endpoint("kinesis-local", client)


@pytest.fixture
def new_stream(endpoint: Endpoint) -> Iterator[Callable[[int], str]]:
    """Creates streams with a number of shards, and deletes them afterwards."""
    names: list[str] = []

    def create(shards: int) -> str:
        name = f"conformance-{uuid.uuid4()}"
        endpoint.client.create_stream(StreamName=name, ShardCount=shards)
        names.append(name)
        endpoint.await_active(name)
        return name

    yield create
    for name in names:
        endpoint.await_active(name)
        endpoint.client.delete_stream(StreamName=name)
