"""What a person reads when Spark has failed."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError

from lakestream.errors import AccessDeniedError, DataLossError, SinkError
from lakestream.exits import exit_of
from lakestream.spark.failures import SPARK_ERRORS, Remedy, in_our_words
from lakestream.statuses import Exit
from lakestream.storage import StorageDeniedError


class Unspeakable(Py4JError):
    """Of Py4J's errors that ask the JVM for their text one that comes too late."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


class Unclassed(PySparkException):
    """The same of Spark's own, which ask it for their class."""

    def getErrorClass(self) -> str:  # noqa: N802 - Spark's name
        raise Py4JError("py4j does not exist in the JVM")


@pytest.mark.parametrize(
    "error",
    [
        Unspeakable(),
        Unclassed("Task 0 failed"),
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(104, "Connection reset by peer"),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o12.parquet"),
        Py4JError("py4j.reflection does not exist in the JVM"),
        Py4JError("o1.parquet.\n: org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down"),
    ],
)
def test_a_jvm_that_is_gone_is_called_so(error: Exception) -> None:
    assert isinstance(error, SPARK_ERRORS)
    said = in_our_words(error)
    assert type(said) is SinkError
    assert "JVM has ended" in str(said)
    assert "spec.resources.driver.memory" in str(said)


def test_a_jvm_that_did_not_start_is_called_so() -> None:
    said = in_our_words(PySparkRuntimeError(error_class="JAVA_GATEWAY_EXITED", message_parameters={}))
    assert type(said) is SinkError
    assert "JVM did not start" in str(said)
    assert "[" not in str(said)


def test_an_error_of_ours_that_an_executor_raised_is_that_error_again() -> None:
    text = (
        "Job aborted …\nTraceback …\nlakestream.errors.DataLossError: shardId-000000000001: gone\n\tat org.apache.spark"
    )
    said = in_our_words(Py4JError(text))
    assert (type(said), str(said)) == (DataLossError, "shardId-000000000001: gone")


def test_an_error_of_the_storage_that_an_executor_met_is_that_error_again() -> None:
    text = (
        "Job aborted …\nTraceback …\nlakestream.storage.StorageDeniedError: put dt=2026-01-31/x: access denied; check "
        "the credentials and the policy: 403\n\tat org.apache.spark"
    )
    said = in_our_words(Py4JError(text))
    assert isinstance(said, StorageDeniedError)
    assert exit_of(said) is Exit.PERMANENT
    assert str(said).startswith("put dt=2026-01-31/x: access denied")


def test_of_several_causes_the_innermost_is_told() -> None:
    text = "An error occurred\norg.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException: disk full"
    assert str(in_our_words(Py4JError(text))) == "a Spark job failed: IOException: disk full"


def test_what_py4j_tells_of_java_is_told() -> None:
    text = "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: Job 5 cancelled\n"
    assert str(in_our_words(Py4JError(text))) == "a Spark job failed: SparkException: Job 5 cancelled"


@pytest.mark.parametrize(
    ("text", "pod"),
    [
        ("An error occurred while calling o1.count.\n: java.lang.OutOfMemoryError: Java heap space\n\tat", "driver"),
        (
            "An error occurred while calling o1.count.\n: org.apache.spark.SparkException: Job aborted due to stage "
            "failure: Task 0 failed\n\tat\nCaused by: java.lang.OutOfMemoryError: Java heap space\n\tat",
            "executor",
        ),
    ],
)
def test_of_too_little_memory_it_is_said_whose(text: str, pod: str) -> None:
    said = str(in_our_words(Py4JError(text)))
    assert said == f"a JVM is out of memory (Java heap space): raise spec.resources.{pod}.memory"


@pytest.mark.parametrize(
    ("cause", "stack", "at_a_value"),
    [
        (
            "java.lang.ArithmeticException: long overflow",
            ("java.base/java.lang.Math.multiplyExact(Math.java:1004)",
             "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1.processNext"),
            True,
        ),
        (
            "org.apache.spark.SparkRuntimeException: [DUPLICATED_MAP_KEY] Duplicate map key x was found",
            ("org.apache.spark.sql.errors.QueryExecutionErrors$.duplicateMapKeyFoundError(QueryExecutionErrors.scala)",),
            True,
        ),
        (
            "java.time.zone.ZoneRulesException: Unknown time-zone ID: X/Y",
            ("java.base/java.time.ZoneId.of(ZoneId.java:410)", "java.base/java.time.ZoneId.of(ZoneId.java:358)",
             "org.apache.spark.sql.catalyst.util.SparkDateTimeUtils.getZoneId(SparkDateTimeUtils.scala:46)"),
            True,
        ),
        (
            "java.lang.NullPointerException: null",
            ("org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter.write(UnsafeWriter.java:110)",),
            False,
        ),
        (
            "java.io.IOException: disk full",
            ("java.base/java.io.FileOutputStream.write(FileOutputStream.java)", "org.apache.spark.shuffle.sort.Write",
             "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1.processNext"),
            False,
        ),
    ],
)  # fmt: skip
def test_where_an_expression_fails_at_a_value_it_is_said_what_to_mend(
    cause: str, stack: tuple[str, ...], at_a_value: bool
) -> None:
    trace = "".join(f"\n\tat {line}" for line in stack)
    text = (
        "An error occurred while calling o193.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to "
        f"stage failure: Lost task 0.3 in stage 2.0 (TID 2): {cause}{trace}\n\nDriver stacktrace:\n\tat "
        f"org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages\nCaused by: {cause}{trace}\n\t... 1 more"
    )
    said = str(in_our_words(Py4JError(text)))
    kind, _, message = cause.partition(": ")
    assert said.startswith(f"a Spark job failed: {kind.rpartition('.')[2]}: {message}")
    assert ("Have spec.transform, or deleteWhen, take that value for null" in said) is at_a_value
    query = Remedy(again="", driver_memory="", executor_memory="", rights="")
    assert "transform" not in str(in_our_words(Py4JError(text), query))


def test_what_s3_denies_is_named_and_left_to_a_person() -> None:
    # As S3A words it, with the SDK's own words beneath.
    text = (
        "An error occurred while calling o88.upsert.\n: org.apache.hudi.exception.HoodieIOException: Failed to create "
        "file\n\tat\nCaused by: java.nio.file.AccessDeniedException: s3a://lake/orders/dt=2026-01-31/f_0.parquet: "
        "Writing Object on s3a://lake/orders/dt=2026-01-31/f_0.parquet: S3Exception: Access Denied (Service: S3, "
        "Status Code: 403, Request ID: X1):AccessDenied\n\tat\nCaused by: "
        "software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Service: S3, Status Code: 403)"
    )
    said = in_our_words(Py4JError(text))
    assert type(said) is AccessDeniedError
    assert exit_of(said) is Exit.PERMANENT
    assert str(said).startswith(
        "the storage denies access: s3a://lake/orders/dt=2026-01-31/f_0.parquet: Writing Object"
    )
    assert "policy" in str(said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ConnectionResetError(104, "Connection reset by peer"),
            "Spark's JVM has ended, killed or out of memory. Ask again; if it happens again, raise HEAP",
        ),
        (
            PySparkRuntimeError(error_class="JAVA_GATEWAY_EXITED", message_parameters={}),
            "Spark's JVM did not start: it was killed, or ended by itself for a reason that it has logged. Ask again; "
            "if it happens again, see that there is memory for HEAP",
        ),
        (
            Py4JError("An error occurred.\n: java.lang.OutOfMemoryError: Java heap space"),
            "a JVM is out of memory (Java heap space): raise HEAP",
        ),
        (
            Py4JError("stage failure\nCaused by: java.lang.OutOfMemoryError: Java heap space"),
            "a JVM is out of memory (Java heap space): raise EXECUTORS",
        ),
        (
            Py4JError("An error occurred.\n: java.nio.file.AccessDeniedException: s3a://lake/x: 403"),
            "the storage denies access: s3a://lake/x: 403. Look at the rights.",
        ),
    ],
)
def test_what_can_be_done_is_what_can_be_done_by_whoever_started_spark(error: Exception, said: str) -> None:
    query = Remedy(again="Ask again", driver_memory="HEAP", executor_memory="EXECUTORS", rights="Look at the rights.")
    assert str(in_our_words(error, query)) == said


@pytest.mark.parametrize(
    ("status", "said"),
    [(11, "Spark has given up: executor after executor has failed."), (137, "Spark's JVM has ended, killed or out of")],
)
def test_a_jvm_that_has_ended_tells_why_by_its_status(monkeypatch: pytest.MonkeyPatch, status: int, said: str) -> None:
    with subprocess.Popen(["sh", "-c", f"exit {status}"]) as jvm:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=jvm))
        assert str(in_our_words(ConnectionResetError(104, "Connection reset by peer"))).startswith(said)
