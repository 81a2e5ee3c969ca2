"""A Kinesis and an S3 server for all tests of this folder; drivers run beside them, as processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from moto_s3 import moto_s3
from pyspark.sql import SparkSession

from chaos.s3 import S3Faults, S3Proxy
from lab.chain import Labs
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

BUCKET = "exactly-once"
"""Of this folder alone: moto keeps one set of buckets per process, whichever server made them."""


@pytest.fixture(scope="session")
def server() -> Iterator[LocalKinesis]:
    with local_kinesis() as running:
        yield running


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """URL of an S3 server with a bucket."""
    with moto_s3(BUCKET) as url:
        yield url


@pytest.fixture
def shaky(s3: str) -> Iterator[S3Proxy]:
    """The S3 server, behind a proxy that can fail; it does not yet."""
    with S3Proxy(s3, S3Faults(Random(1))) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def spark_on_s3(spark: SparkSession, s3: str) -> SparkSession:
    """The session, which can also read the S3 server."""
    conf = spark._jsc.hadoopConfiguration()
    for key, value in {
        "fs.s3a.endpoint": s3,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
    }.items():
        conf.set(key, value)
    return spark


@pytest.fixture(scope="session")
def labs(server: LocalKinesis, s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    made = Labs(server, tmp_path_factory.mktemp("labs"), s3, BUCKET)
    yield made
    made.end()
