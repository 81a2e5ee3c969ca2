"""A Hive metastore for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from moto_s3 import moto_s3
from pyspark.sql import SparkSession

from engines.metastore import Metastore, running
from lakestream.catalogs import CatalogKeeper

BUCKET = "catalogs"
CATALOG_SECONDS = 240.0
_DATABASES = count(1)


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """URL of an S3 server with a bucket."""
    with moto_s3(BUCKET) as url:
        yield url


@pytest.fixture(scope="session", params=["2.3.9", pytest.param("3.1.3", marks=pytest.mark.slow)])
def metastore(request: pytest.FixtureRequest, s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """One of the release that is in Spark's jars, and one that many installations have; it reaches S3."""
    s3a = {
        "fs.s3a.endpoint": s3,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    }
    with running(tmp_path_factory.mktemp("metastore"), request.param, s3a) as started:
        yield started


@pytest.fixture(autouse=True)
def _is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that ends leaves a catalog that is late to the next one, and here there is none."""
    monkeypatch.setitem(CatalogKeeper.__init__.__kwdefaults__, "last_words", CATALOG_SECONDS)


@pytest.fixture
def database(spark: SparkSession, metastore: Metastore, tmp_path: Path) -> str:
    """A database of its own for each test."""
    name = f"lake{next(_DATABASES)}"
    jvm: Any = spark._jvm
    with metastore.asked(spark) as client:
        client.createDatabase(jvm.org.apache.hadoop.hive.metastore.api.Database(name, None, f"file://{tmp_path}", {}))
    return name
