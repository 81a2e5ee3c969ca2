"""A running JVM is asked what is left of its heap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from py4j.java_gateway import JavaGateway

from lakestream.spark.java import java_home
from lakestream_bench._jvm import ask, heap_after_collection


@pytest.fixture(scope="module")
def gateway() -> Iterator[JavaGateway]:
    """A JVM that does nothing else: what others of a session's let go meanwhile would be in the difference."""
    (jar,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    gateway = JavaGateway.launch_gateway(
        jarpath=str(jar), java_path=str(java_home() / "bin" / "java"), die_on_exit=True, enable_auth=True
    )
    yield gateway
    gateway.shutdown()
    gateway.java_process.communicate(timeout=30)


def test_a_jvm_tells_what_of_its_heap_is_in_use(gateway: JavaGateway) -> None:
    before = heap_after_collection(gateway.java_process.pid)
    kept = gateway.jvm.java.nio.ByteBuffer.allocate(64 << 20)
    gateway.jvm.java.nio.ByteBuffer.allocate(32 << 20)
    assert heap_after_collection(gateway.java_process.pid) - before == pytest.approx(64, abs=8)
    assert kept.capacity() == 64 << 20


def test_a_jvm_that_refuses_says_why(gateway: JavaGateway) -> None:
    with pytest.raises(RuntimeError, match=r"refuses GC\.walk"):
        ask(gateway.java_process.pid, "GC.walk")
