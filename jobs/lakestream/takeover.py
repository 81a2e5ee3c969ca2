"""Taking over from drivers that may not have ended."""

from __future__ import annotations

from typing import Protocol

from lakestream.stopping import StopSignal


class Log(Protocol):
    """What has to be known of the checkpoint log."""

    def seconds_until_safe(self) -> float: ...
    def check_fence(self) -> None: ...


def await_predecessors(log: Log, stop: StopSignal) -> bool:
    """Wait until no predecessor can be writing any more: until then its batch would be undone under its hands.

    Returns:
        Whether it is so; otherwise a stop was asked for.

    Raises:
        FencedError: somebody else has taken over in the meantime.
    """
    stop.wait(log.seconds_until_safe())
    if stop.is_set():
        return False
    log.check_fence()
    return True
