"""A driver begins anew in its place: an end to all that it had under way, but its pod and its memory of why stay.

What passes by itself is waited out so: a storage that does not answer, and one, or Kinesis, that denies a request. For
rights are not known everywhere at once: what was allowed just now is denied here and there for seconds to a minute. A
right that is missing for good is denied for longer. Likewise a batch is left behind at whose records SQL fails, which
its replay finds.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from datetime import timedelta
from uuid import uuid4

from lakestream.errors import AccessDeniedError
from lakestream.statuses import Exit
from lakestream.stopping import StopSignal
from lakestream.texts import printable

logger = logging.getLogger(__name__)

DENIED_FOR = timedelta(minutes=5)
"""From the first denial until it is believed: several times what a right takes to be known, and enough for somebody who
has read the warning to mend a policy. Batches that go on begin it again."""
PAUSE = timedelta(seconds=10)
"""Before a driver that was denied something asks again."""

_WHY = "LAKESTREAM_BEGUN_ANEW"
"""Environment variable, which outlives the program: why, until that has helped."""
_MOST_WHY = 4096
"""Characters of it: Linux begins no program with a variable of 128 KiB, which a proxy's page in an error may have."""
_DENIED = "LAKESTREAM_DENIED_SINCE"
"""The same of the first denial, if there was one: seconds of the machine's clock that nobody sets."""


_STATUS = "LAKESTREAM_WOULD_END_WITH"
"""The same of the status of a driver that this does not help."""
_OWNER = "LAKESTREAM_OWNER"
_EPOCH = "LAKESTREAM_EPOCH"
"""The same of the driver's id, and of the last epoch that it has taken."""


def why_begun_anew() -> str:
    """Empty: this driver was started by somebody, or batches have gone on since."""
    return os.environ.get(_WHY, "")


def owner_and_epoch() -> tuple[str, int]:
    """An id of this driver, and the epoch that it had; 0: none. Who was started by somebody is a new driver."""
    if not why_begun_anew():
        for name in (_OWNER, _EPOCH):
            os.environ.pop(name, None)
    return os.environ.setdefault(_OWNER, uuid4().hex), int(os.environ.get(_EPOCH, "0"))


def has_taken(epoch: int) -> None:
    """Remember the epoch: if this driver begins anew, it is not to take over from who has taken over from it."""
    os.environ[_EPOCH] = str(epoch)


def would_end_with() -> Exit:
    """The status of a driver that has begun anew, if that does not help."""
    return Exit(int(os.environ.get(_STATUS, Exit.STORAGE)))


def pause(stop: StopSignal) -> None:
    """Give a denial some time to pass, before anything is asked for again."""
    if _DENIED in os.environ:
        stop.wait(PAUSE.total_seconds())


def batches_go_on() -> None:
    """It has helped; the next time it may again."""
    for name in (_WHY, _DENIED, _STATUS):
        os.environ.pop(name, None)


def outlast_outage(why: str, stop: StopSignal) -> None:
    """Run this program anew because of a storage that does not answer.

    Returns if it is to end anyway; and if it has begun anew, and no batch has gone on since: then whoever starts
    drivers decides, and counts.
    """
    _begin_anew_once(why, Exit.STORAGE, stop)


def outlast_failure(why: str, stop: StopSignal) -> None:
    """Run this program anew because of a record at which the document's SQL fails, to leave it out.

    Returns as `outlast_outage`.
    """
    _begin_anew_once(why, Exit.FAILED, stop)


def outlast_denial(denied: AccessDeniedError, stop: StopSignal) -> None:
    """Run this program anew because of a request that was denied.

    Returns if it is to end anyway; and if requests have been denied for so long that it is not going to pass.
    """
    since = float(os.environ.setdefault(_DENIED, str(time.monotonic())))
    left = since + DENIED_FOR.total_seconds() - time.monotonic()
    if stop.is_asked or left <= 0:
        return
    logger.warning(
        "%s. A right that was given just now is not known everywhere at once: this is tried again for %.0f s, and "
        "then ends the driver",
        str(denied).rstrip("."),
        left,
    )
    _begin_anew(f"{denied}", Exit.PERMANENT, stop)


def _begin_anew_once(why: str, status: Exit, stop: StopSignal) -> None:
    if not (stop.is_asked or why_begun_anew()):
        logger.error("%s", why)
        _begin_anew(why, status, stop)


def _begin_anew(why: str, status: Exit, stop: StopSignal) -> None:
    """Run this program, with its arguments, from its beginning. Threads, connections and memory are gone at once."""
    os.environ[_WHY] = printable(why)[:_MOST_WHY]
    os.environ[_STATUS] = str(int(status))
    stop.hand_over()
    logging.shutdown()
    os.execv(sys.executable, sys.orig_argv)
