"""Looks at the running pipeline, through the doors that anyone could use."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from operator import add

from lakestream_demo.document import DemoDocument
from lakestream_demo.history import SPACING_SECONDS, Moment
from lakestream_demo.loopback import get
from lakestream_demo.observed import WINDOW, LoadSeen, Observed, StreamSeen, WriterSeen
from lakestream_demo.settings import Load
from lakestream_demo.sources import after_lines, load_seen, stream_seen
from lakestream_demo.tailing import LineTail
from lakestream_demo.workspace import Workspace


class Observer:
    """Keeps the last few seconds of what was seen, and moments of all of it."""

    def __init__(self, workspace: Workspace, document: DemoDocument, loads: Sequence[Load], now: datetime) -> None:
        self._metrics = f"{document.endpoint}/metrics"
        self._stream = document.stream
        self._statistics = [workspace.statistics / f"{load.name}_stats.csv" for load in loads]
        names = [writer.name for writer in document.writers]
        self._tails = [LineTail(workspace.progress(name)) for name in names]
        self._last = Observed(now, LoadSeen(), StreamSeen(), tuple(WriterSeen(name) for name in names))
        self._window: deque[Observed] = deque()
        self._moments: list[Moment] = []
        self.began_at = now

    @property
    def window(self) -> Sequence[Observed]:
        """The last few seconds, in order."""
        return self._window

    @property
    def last(self) -> Observed:
        return self._last

    @property
    def moments(self) -> Sequence[Moment]:
        """From the beginning on, in order."""
        return self._moments

    def look(self, now: datetime) -> None:
        """Add an observation; what cannot be seen just now stays as it was."""
        metrics = get(self._metrics)
        self._last = Observed(
            at=now,
            load=self._look_at_load(),
            stream=self._last.stream if metrics is None else stream_seen(metrics, self._stream),
            writers=tuple(
                after_lines(writer, tail.new_lines())
                for writer, tail in zip(self._last.writers, self._tails, strict=True)
            ),
        )
        self._window.append(self._last)
        while now - self._window[0].at > WINDOW:
            self._window.popleft()
        seconds = (now - self.began_at).total_seconds()
        if not self._moments or seconds >= self._moments[-1].seconds + SPACING_SECONDS:
            self._moments.append(Moment.of(self._last, seconds))

    def settle(self, load: LoadSeen) -> None:
        """Take over the final figures of all that was sent: Locust's tables lack the last second."""
        self._last = replace(self._last, load=self._last.load.grown(load))

    def _look_at_load(self) -> LoadSeen:
        tables = [file.read_text() for file in self._statistics if file.exists()]
        return self._last.load.grown(reduce(add, (load_seen(table, self._stream) for table in tables), LoadSeen()))
