"""A local Kinesis, and consumers of its streams."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from lakestream.kinesis import HttpKinesisClient, KinesisSettings, PlannerSettings
from lakestream.testing.consumer import Consume, Consumer
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis


def brief_sleep(seconds: float) -> None:
    """The server has no rates to respect here, and pages through a silent day in 96 pauses."""
    time.sleep(seconds / 50)


@pytest.fixture(scope="session")
def server() -> Iterator[LocalKinesis]:
    with local_kinesis(limits=Limits.none()) as running:
        yield running


@pytest.fixture
def consume(server: LocalKinesis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Consume]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    server.faults.clear()

    with ExitStack() as stack:

        def make(
            stream: str,
            patience: float = 60.0,
            account: str | None = None,
            endpoint: str | None = None,
            **planner: object,
        ) -> Consumer:
            settings = KinesisSettings(
                stream, server.region, endpoint or server.endpoint, account, patience=patience, timeout=30.0
            )
            client = HttpKinesisClient(settings, sleep=brief_sleep)
            chosen = {"starting_position": "TRIM_HORIZON", "settle": timedelta(milliseconds=20), **planner}
            consumer = Consumer(client, settings, PlannerSettings(**chosen), brief_sleep)  # type: ignore[arg-type]
            stack.callback(client.close)
            stack.callback(consumer.planner.close)
            return consumer

        yield make
        server.faults.clear()
