"""One Spark session for all Spark tests: a JVM starts once, and Hudi's classes load once."""

from collections.abc import Iterator

import pytest
from lakestream.spark.session import SessionSettings, build_session
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = build_session(
        SessionSettings(
            app_name="lakestream-tests",
            cores=2,
            hudi=True,
            local_dir=tmp_path_factory.mktemp("spark-local"),
        )
    )
    yield session
    session.stop()
