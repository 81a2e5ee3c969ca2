"""Crash points: where the exactly-once tests kill a driver, for real.

The engine, the reader and the sinks call `reach` at the named steps of a batch. Nothing happens
unless the environment says so:

    LAKESTREAM_CRASH_AT=sink_committed      SIGKILL when this step is reached for the first time
    LAKESTREAM_CRASH_AT=written:3           …for the third time in this process
    LAKESTREAM_CRASH_PID=4711               kill this process (the driver) instead of the one that reaches the step
    LAKESTREAM_CRASH_PID=-4711              kill this process group: driver and JVM at one instant

The last two are for steps that Spark's Python workers reach: they inherit the variables. A test
starts the driver as the leader of a group, whose id it cannot know before:
`setsid sh -c 'LAKESTREAM_CRASH_PID=-$$ exec lakestream ingest …'`.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Mapping
from functools import lru_cache

from lakestream.errors import SettingsError

CRASH_AT = "LAKESTREAM_CRASH_AT"
CRASH_PID = "LAKESTREAM_CRASH_PID"

STEPS = ("planned", "half_read", "written", "sink_committed", "committed")
"""In a batch's order. planned: the plan is in the log. half_read: a task has read about half of its records.
written: data is in the sink's place, but not visible (Hudi: before its commit) or not known to the log.
sink_committed: visible, before our commit. committed: our commit is in the log."""


def reach(step: str) -> None:
    """Pass a crash point, or die there (SIGKILL: no handler, no clean-up, no flush)."""
    _crash_point()(step)


def crash_point(environ: Mapping[str, str], kill: Callable[[int, int], None] = os.kill) -> Callable[[str], None]:
    """What `reach` does in a process with this environment.

    Raises:
        SettingsError: a variable that cannot be understood; a test that kills nobody proves nothing.
    """
    wanted = environ.get(CRASH_AT)
    if wanted is None:
        return lambda step: None
    step, _, nth = wanted.partition(":")
    if step not in STEPS or (nth and not (nth.isdecimal() and int(nth) > 0)):
        raise SettingsError(f"{CRASH_AT}={wanted!r}: write <step> or <step>:<nth>, with a step of {', '.join(STEPS)}")
    target = environ.get(CRASH_PID, "0")
    if not target.removeprefix("-").isdecimal():
        raise SettingsError(f"{CRASH_PID}={target!r} is no process id")
    reached = itertools.count(1)
    fatal = int(nth or 1)

    def die(at: str) -> None:
        # next() on a counter is atomic: two threads cannot both be the nth.
        if at != step or next(reached) != fatal:
            return
        if int(target) != 0:
            kill(int(target), signal.SIGKILL)
        # A worker that has killed its driver must not go on either.
        kill(os.getpid(), signal.SIGKILL)

    return die


@lru_cache(maxsize=1)
def _crash_point() -> Callable[[str], None]:
    # Not at import: a worker gets its environment from Spark, after the module may have been loaded.
    return crash_point(os.environ)
