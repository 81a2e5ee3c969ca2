"""How a driver ends all that it is at: as somebody else may write now, or to begin anew where that helps."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from lakestream.anew import outlast_denial, outlast_failure, outlast_outage
from lakestream.errors import AccessDeniedError, ExpressionError, LakeStreamError
from lakestream.exits import exit_of, leave_message
from lakestream.spark.session import kill_jvm, owns_jvm
from lakestream.stopping import StopSignal
from lakestream.storage import StorageUnavailableError

logger = logging.getLogger(__name__)


def end_at_once(stop: StopSignal, error: LakeStreamError) -> None:
    """Another driver writes from now on, so this process must be gone within the time that it waits.

    An orderly stop could wait for a Hudi commit, which is just what must not come any more. Left to itself, the JVM
    finds the pipe from this process closed, and takes up to 12 s to end.
    """
    end_all(stop, error)
    logger.error("%s", error)
    leave_message(str(error))
    logging.shutdown()
    os._exit(exit_of(error))


def end_all(stop: StopSignal, error: LakeStreamError) -> None:
    """End all that this process is at. A program that begins anew is as good as gone; so where the storage is merely
    away, nobody has to start a driver: this one may go on, and takes another epoch when the storage is back."""
    kill_jvm()
    if owns_jvm() and isinstance(error, StorageUnavailableError):
        outlast_outage(f"{error}", stop)


@contextmanager
def failures_outlasted(stop: StopSignal) -> Iterator[None]:
    """Begin anew after a request that was denied, whatever it was for, and after a record at which SQL fails, unless
    that is the end: the one place that decides. By now all has ended in order, and what was begun is undone by the next
    start, as after a kill."""
    try:
        yield
    except AccessDeniedError as error:
        if owns_jvm():
            kill_jvm()
            outlast_denial(error, stop)
        raise
    except ExpressionError as error:
        if owns_jvm():
            kill_jvm()
            outlast_failure(f"{error}", stop)
        raise
