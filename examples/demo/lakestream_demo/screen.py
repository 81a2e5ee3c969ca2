"""Where a run is shown: a live view on a terminal, a line now and then anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live

from lakestream_demo.observed import Observed
from lakestream_demo.steps import Timeline
from lakestream_demo.view import draw, line

_REFRESHES_PER_SECOND = 8  # enough for the spinner to turn
_SECONDS_BETWEEN_LINES = 5.0


class Screen(Protocol):
    """Is shown the run again and again, and draws it as often as it likes."""

    def show(self, timeline: Timeline, window: Sequence[Observed], now: float) -> None: ...


class LiveScreen:
    """Renews a view in place."""

    def __init__(self, live: Live, headline: str) -> None:
        self._live = live
        self._headline = headline

    def show(self, timeline: Timeline, window: Sequence[Observed], now: float) -> None:
        self._live.update(draw(self._headline, timeline, window, now))


class LineScreen:
    """Prints a line when a phase begins, and every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps = 0
        self._last = 0.0

    def show(self, timeline: Timeline, window: Sequence[Observed], now: float) -> None:
        if len(timeline.steps) == self._steps and now - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._steps, self._last = len(timeline.steps), now
        self._console.print(line(timeline, window, now), highlight=False, soft_wrap=True)


@contextmanager
def open_screen(console: Console, headline: str) -> Iterator[Screen]:
    """The screen that suits a console."""
    if not console.is_terminal:
        console.print(headline, highlight=False, soft_wrap=True)
        yield LineScreen(console)
        return
    with Live(console=console, refresh_per_second=_REFRESHES_PER_SECOND) as live:
        yield LiveScreen(live, headline)
