"""What a JVM of Spark logs, by our settings of Log4j."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from lakestream.spark.archive import local_archive, local_class_path
from lakestream.spark.java import java_home
from lakestream.spark.session import SessionSettings, local_conf
from lakestream_api.names import LOG_FORMAT_VARIABLE

pytestmark = pytest.mark.spark


def _logged(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Lines that a JVM of its own writes of two records, the second with an exception."""
    conf = SparkConf(loadDefaults=False).setMaster("local[1]")
    conf.setAll(list(local_conf(SessionSettings("app", cores=1), local_class_path(), local_archive()).items()))
    gateway = launch_gateway(conf, popen_kwargs={"start_new_session": True})  # type: ignore[no-untyped-call]
    try:
        jvm: Any = gateway.jvm
        java = jvm.org.apache.logging.log4j.LogManager.getLogger("org.example.Sink")
        java.warn('a "quoted"\n\ttext')
        java.error("it failed", jvm.java.lang.IllegalStateException("no such \\ file"))
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
    return [line for line in capfd.readouterr().err.splitlines() if line]


def test_a_jvm_logs_lines_of_json_where_the_driver_does(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    monkeypatch.setenv(LOG_FORMAT_VARIABLE, "json")
    warned, failed = (json.loads(line) for line in _logged(capfd) if "org.example" in line)
    assert (warned["level"], warned["logger"]) == ("WARN", "org.example.Sink")
    assert warned["message"] == 'a "quoted"\n\ttext'
    assert "error" not in warned
    assert failed["error"].lstrip().startswith("java.lang.IllegalStateException: no such \\ file")
    assert failed["time"].endswith("Z")


def test_a_jvm_logs_text_otherwise(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    monkeypatch.delenv(LOG_FORMAT_VARIABLE, raising=False)
    lines = _logged(capfd)
    assert any(line.endswith(' WARN Sink: a "quoted"') for line in lines)
    assert "java.lang.IllegalStateException: no such \\ file" in lines
