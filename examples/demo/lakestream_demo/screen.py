"""Where a run is shown: a live view on a terminal, a line now and then anywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live

from lakestream_demo.observed import Observed
from lakestream_demo.steps import Timeline
from lakestream_demo.view import draw, ended_line, running_line

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
    """Prints a line when a phase has ended, and every few seconds while one goes on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ended = 0
        self._last: float | None = None

    def show(self, timeline: Timeline, window: Sequence[Observed], now: float) -> None:
        ended = [step for step in timeline.steps if step.ended is not None]
        for step in ended[self._ended :]:
            self._print(ended_line(step), now)
        self._ended = len(ended)
        if len(timeline.steps) > len(ended) and (self._last is None or now - self._last >= _SECONDS_BETWEEN_LINES):
            self._print(running_line(timeline.steps[-1], window, now), now)

    def _print(self, text: str, now: float) -> None:
        self._last = now
        self._console.print(text, highlight=False, soft_wrap=True)


@contextmanager
def open_screen(console: Console, headline: str) -> Iterator[Screen]:
    """The screen that suits a console."""
    if not console.is_terminal:
        console.print(headline, highlight=False, soft_wrap=True)
        yield LineScreen(console)
        return
    with Live(console=console, refresh_per_second=_REFRESHES_PER_SECOND) as live:
        yield LiveScreen(live, headline)
