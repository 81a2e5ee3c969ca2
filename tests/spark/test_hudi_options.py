"""The options that a document may give, held against those that Hudi's classes name."""

from __future__ import annotations

import zipfile

import pytest

from lakestream.spark.jars import ensure_jars
from lakestream_api.hudi_options import NAMES

pytestmark = pytest.mark.spark

CLASSES = (
    "common/config/HoodieCommonConfig",
    "common/config/HoodieMemoryConfig",
    "common/config/HoodieMetadataConfig",
    "common/config/HoodieStorageConfig",
    "common/fs/ConsistencyGuardConfig",
    "common/fs/FileSystemRetryConfig",
    "common/table/view/FileSystemViewStorageConfig",
    "config/HoodieArchivalConfig",
    "config/HoodieCleanConfig",
    "config/HoodieCompactionConfig",
    "config/HoodieIndexConfig",
    "config/HoodieWriteCommitCallbackConfig",
    "config/HoodieWriteConfig",
    "config/metrics/HoodieMetricsConfig",
    "config/metrics/HoodieMetricsGraphiteConfig",
    "config/metrics/HoodieMetricsJmxConfig",
    "config/metrics/HoodieMetricsPrometheusConfig",
)
"""Of `org.apache.hudi`, whose `ConfigProperty` constants Hudi's writer reads."""


def constant(text: str) -> bytes:
    """A string in the constant pool of a class file (JVM specification, 4.4.7)."""
    return b"\x01" + len(text).to_bytes(2, "big") + text.encode()


def test_hudi_knows_every_option_that_is_allowed() -> None:
    (bundle,) = ensure_jars().glob("hudi-spark*-bundle_*.jar")
    with zipfile.ZipFile(bundle) as jar:
        # To ask the JVM for each constant takes more than a hundred times as long.
        classes = [jar.read(f"org/apache/hudi/{name}.class") for name in CLASSES]
    unknown = [name for name in sorted(NAMES) if not any(constant(name) in content for content in classes)]
    assert unknown == []
    assert not any(constant("hoodie.parquet.compresion.codec") in content for content in classes)
