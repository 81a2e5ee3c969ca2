"""One Spark session for all Spark tests: a JVM starts once, and Hudi's classes load once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakestream.kinesis import SCHEMA, KinesisSettings
from lakestream.model import BatchPlan, Reading, ShardRange, after, at
from lakestream.spark.archive import ensure_archive
from lakestream.spark.read import Reader
from lakestream.spark.session import SessionSettings, build_session
from lakestream.storage import LakePath, S3Settings, StoreSettings

ARRIVAL = datetime(2026, 1, 31, 12, tzinfo=UTC)


def pytest_configure(config: pytest.Config) -> None:
    # PySpark 3.5 compares PyArrow's version with what it brought along from distutils, or with distutils itself.
    for deprecated in ("distutils Version classes are deprecated", "The distutils package is deprecated"):
        config.addinivalue_line("filterwarnings", f"ignore:{deprecated}:DeprecationWarning")
    # It leaves the socket that brought a job's rows to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


def pytest_itemcollected(item: pytest.Item) -> None:
    """All tests of this folder are those of `make spark`, which no other target runs.

    Tests that do nothing but ask Spark go to two workers, those of Hudi's tables to one of them: code that a JVM has
    not run before costs it many times what it costs later, and other workers have the drivers to wait for. It has to be
    known of each test as soon as it is collected: what distributes them may look before any conftest.py does.
    """
    item.add_marker(pytest.mark.spark)
    fixtures = {*getattr(item, "fixturenames", ())}
    if _FIXTURES & fixtures == {"spark"}:
        item.add_marker(pytest.mark.xdist_group("hudi" if "interpreted" in fixtures else "spark"))


_FIXTURES = {"spark", "labs", "own_server"}
"""The session, and what tests have that start drivers."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from quick_spark import JAVA_OPTIONS  # Spark's workers import this file, and do not find that one

    ensure_archive()
    session = build_session(
        SessionSettings(
            app_name="lakestream-tests",
            cores=2,
            hudi=True,
            local_dir=tmp_path_factory.mktemp("spark-local"),
            conf={"spark.driver.defaultJavaOptions": JAVA_OPTIONS, "spark.sql.shuffle.partitions": "2"},
        )
    )
    yield session
    session.stop()


@pytest.fixture(name="interpreted")
def _interpreted(spark: SparkSession) -> Iterator[None]:
    """Queries of a test that asks each of them once, of a few rows, are not compiled."""
    from quick_spark import interpreted

    with interpreted(spark):
        yield


@pytest.fixture(scope="session")
def kinesis() -> KinesisSettings:
    """Settings for readers that never ask Kinesis."""
    return KinesisSettings("orders", "eu-west-1")


@pytest.fixture(scope="session")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> StoreSettings:
    """A quarantine that nothing is read from."""
    return StoreSettings(LakePath.parse(str(tmp_path_factory.mktemp("quarantine"))), S3Settings("eu-west-1"))


@pytest.fixture(scope="session")
def scripted() -> Callable[[Sequence[Sequence[bytes]]], tuple[BatchPlan, Reader]]:
    """A plan and a reader of given records, one list for each task (and shard); they arrive a second apart."""
    return _scripted


def _scripted(tasks: Sequence[Sequence[bytes]]) -> tuple[BatchPlan, Reader]:
    ranges = tuple(_range(task, max(1, len(records))) for task, records in enumerate(tasks))
    plan = BatchPlan(
        batch=0,
        epoch=1,
        planned_at=ARRIVAL + timedelta(hours=1),
        base=ARRIVAL,
        horizon=ARRIVAL + timedelta(hours=1),
        caught_up=True,
        ranges=ranges,
        cursors=tuple(Reading(piece.shard_id, piece.end, ARRIVAL, None) for piece in ranges),
    )

    def read(_: KinesisSettings, pieces: Sequence[ShardRange]) -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            if records := tasks[piece.task]:
                yield _page(piece.shard_id, records)

    return plan, read


def _range(task: int, records: int) -> ShardRange:
    return ShardRange(
        shard_id=f"shardId-{task:012d}",
        start=at(1),
        end=after(records),
        first=1,
        first_arrival=ARRIVAL,
        end_arrival=ARRIVAL + timedelta(seconds=records),
        closes_shard=False,
        expected_records=records,
        task=task,
    )


def _page(shard_id: str, records: Sequence[bytes]) -> pa.RecordBatch:
    numbers = range(1, len(records) + 1)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(records, pa.binary()),
            pa.array([f"key-{n}" for n in numbers]),
            pa.array([str(n) for n in numbers]),
            pa.array([0] * len(records), pa.int64()),
            pa.array([shard_id] * len(records)),
            pa.array([ARRIVAL + timedelta(seconds=n - 1) for n in numbers], pa.timestamp("us", tz="UTC")),
        ],
        schema=SCHEMA,
    )
