"""What failed in Spark, in our own words: an executor's exception reaches the driver as text only."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import TimeoutExpired

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from lakestream.errors import AccessDeniedError, ExpressionError, LakeStreamError, SinkError

logger = logging.getLogger(__name__)

SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
"""What PySpark raises, whatever went wrong; py4j lets through what its sockets say of a JVM that is gone."""

# The last line of the traceback that Python workers send along.
_RAISED = re.compile(r"(lakestream\.[\w.]+)\.(\w+Error): (.+)")
# Py4J puts a colon before the first.
_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.$]+(?:Exception|Error)): (.+)$", re.MULTILINE)

# The first line of Java's stack that is none of Java's own, where an expression of SQL has failed at a value.
_AT_A_VALUE = re.compile(r"\n(?:\s+at java\.[^\n]*\n)*\s+at org\.apache\.spark\.sql\.(?:catalyst|errors|types)\.")

_SHUT_DOWN = "cancelled because SparkContext was shut down"
"""What jobs in hand are told by a JVM that ends itself, as one does that is out of memory."""

_GAVE_UP = 11
"""Status of a JVM to which `spark.executor.maxNumFailures` executors were lost, by Spark's `SparkExitCode`."""
_ENDS_IN = 5.0
"""Seconds that a JVM may take to end, once it does not answer any more."""

# py4j's whole text where its connection broke before the answer: while a method was called, or a class looked up, as
# it does to tell what kind of exception it has been sent.
_NO_ANSWER = re.compile(r"An error occurred while calling [\w.:]+|[\w.]+ does not exist in the JVM")


@dataclass(frozen=True, slots=True)
class Remedy:
    """What whoever has started Spark can do."""

    again: str
    """How it is tried once more."""
    driver_memory: str
    executor_memory: str
    """What sets them."""
    rights: str
    """What to check where the storage denies access."""
    at_a_value: str = ""
    """What to mend where an expression of SQL fails at a value."""


WRITER = Remedy(
    again="Start the writer again",
    driver_memory="spec.resources.driver.memory",
    executor_memory="spec.resources.executor.memory",
    rights="Check the driver's credentials and their policy (charts/lakestream/iam/job.json has what it needs)",
    at_a_value=". An expression of SQL fails at a value of a record. Such records go to quarantine when the batch is "
    "begun anew, unless that value is of several records. Have spec.transform, or deleteWhen, take that value for "
    "null, or leave the record out",
)


@contextmanager
def spark_errors_in_our_words() -> Iterator[None]:
    """Of all that is done in it."""
    try:
        yield
    except SPARK_ERRORS as error:
        logger.debug("Spark failed", exc_info=True)
        raise in_our_words(error) from error


def in_our_words(error: BaseException, remedy: Remedy = WRITER) -> LakeStreamError:
    """The error that an executor raised, if it is one of ours; else the innermost cause that Spark tells of."""
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return _ended(remedy)
    try:  # class and text are asked of the JVM
        did_not_start = isinstance(error, PySparkException) and error.getErrorClass() == "JAVA_GATEWAY_EXITED"
        text = str(error)
    except SPARK_ERRORS:
        return _ended(remedy)
    if did_not_start:
        return SinkError(
            "Spark's JVM did not start: it was killed, or ended by itself for a reason that it has logged. "
            f"{remedy.again}; if it happens again, see that there is memory for {remedy.driver_memory}"
        )
    for module, name, message in reversed(_RAISED.findall(text)):
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and issubclass(kind, LakeStreamError):
            return kind(message.strip())
    if _SHUT_DOWN in text or _NO_ANSWER.fullmatch(text.strip()):
        return _ended(remedy)
    found = list(_CAUSE.finditer(text))
    causes = [(one[1], one[2]) for one in found]
    # S3A's, with path and request; what is beneath it does not tell of what.
    if denied := next((message for kind, message in causes if kind.endswith(".AccessDeniedException")), None):
        return AccessDeniedError(f"the storage denies access: {denied.strip()}. {remedy.rights}")
    if causes:
        kind, message = causes[-1]
        if kind.endswith("OutOfMemoryError"):
            # A task's is told as the failure of its stage.
            setting = remedy.executor_memory if "stage failure" in text else remedy.driver_memory
            return SinkError(f"a JVM is out of memory ({message.strip()}): raise {setting}")
        # A null where Spark's own code expects none is not what an expression tells of a value.
        is_at_a_value = _AT_A_VALUE.match(text, found[-1].end()) and not kind.endswith("NullPointerException")
        told = f"a Spark job failed: {kind.rsplit('.', 1)[-1]}: {message.strip()}"
        return ExpressionError(f"{told}{remedy.at_a_value}") if is_at_a_value else SinkError(told)
    return SinkError(f"a Spark job failed: {text.strip().splitlines()[0] if text.strip() else type(error).__name__}")


def _ended(remedy: Remedy) -> SinkError:
    """Why there is no JVM any more."""
    gateway = SparkContext._gateway
    process = gateway.proc if gateway is not None else None
    try:
        status = process.wait(_ENDS_IN) if process is not None else None
    except TimeoutExpired:
        status = None
    if status == _GAVE_UP:
        return SinkError(
            "Spark has given up: executor after executor has failed. Look at the logs and events of their pods while "
            f"they start, and at the driver's log. {remedy.again} once they can"
        )
    return SinkError(
        f"Spark's JVM has ended, killed or out of memory. {remedy.again}; if it happens again, raise "
        f"{remedy.driver_memory}"
    )
