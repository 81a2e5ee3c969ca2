"""A driver begins anew in its place: an end to all that it had under way, but its pod and its memory of why stay."""

from __future__ import annotations

import logging
import os
import sys

from lakestream.stopping import StopSignal

logger = logging.getLogger(__name__)

_WHY = "LAKESTREAM_BEGUN_ANEW"
"""Environment variable, which outlives the program: why, until that has helped."""


def why_begun_anew() -> str:
    """Empty: this driver was started by somebody, or batches have gone on since."""
    return os.environ.get(_WHY, "")


def batches_go_on() -> None:
    """It has helped; the next time it may again."""
    os.environ.pop(_WHY, None)


def begin_anew(why: str, stop: StopSignal) -> None:
    """Run this program, with its arguments, from its beginning. Threads, connections and memory are gone at once.

    Returns if it is to end anyway, for the program would not know; and if it has been done, and no batch has gone on
    since: then whoever starts drivers decides, and counts.
    """
    if stop.is_asked or why_begun_anew():
        return
    os.environ[_WHY] = why
    logger.error("%s", why)
    logging.shutdown()
    os.execv(sys.executable, sys.orig_argv)
