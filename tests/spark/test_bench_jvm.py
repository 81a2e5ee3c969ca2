"""A running JVM is asked what is left of its heap."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakestream_bench._jvm import ask, heap_after_collection

pytestmark = pytest.mark.spark


def test_a_jvm_tells_what_of_its_heap_is_in_use(spark: SparkSession) -> None:
    jvm, pid = spark._jvm, SparkContext._gateway.proc.pid
    assert jvm is not None
    before = heap_after_collection(pid)
    kept = jvm.java.nio.ByteBuffer.allocate(64 << 20)
    assert heap_after_collection(pid) - before == pytest.approx(64, abs=16)
    assert kept.capacity() == 64 << 20


def test_a_jvm_that_refuses_says_why(spark: SparkSession) -> None:
    with pytest.raises(RuntimeError, match=r"refuses GC\.walk"):
        ask(SparkContext._gateway.proc.pid, "GC.walk")
