"""The planner of a writer: of what its stream gives next, and of what somebody has asked for of it once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import TracebackType

from lakestream.kinesis.planner import Planner
from lakestream.kinesis.port import CLOCK_ERROR, KinesisClient, Sleep
from lakestream.kinesis.settings import PlannerSettings
from lakestream.kinesis.spans import SpanPlanner
from lakestream.model import BatchCommit, BatchPlan, Cursor, Portion, SpanDue, Trim


class StreamPlanner:
    """The engine's planner: each batch is of one of the two."""

    def __init__(
        self,
        client: KinesisClient,
        settings: PlannerSettings,
        *,
        slots: Callable[[], int],
        sleep: Sleep = time.sleep,
    ) -> None:
        """As `Planner`."""
        self._client = client
        self._tip: datetime | None = None  # of the stream, when the first plan was made
        self._stream = Planner(client, settings, slots=slots, sleep=sleep)
        self._spans = SpanPlanner(client, settings, slots=slots, sleep=sleep)

    def __enter__(self) -> StreamPlanner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()
        self._spans.close()

    @property
    def caught_up_to(self) -> datetime | None:
        """Of the stream, as `Planner.caught_up_to`."""
        return self._stream.caught_up_to

    @property
    def missing(self) -> timedelta | None:
        """What `caught_up_to` lacks to be behind all that had arrived when the first plan was made; None as that is."""
        if self.caught_up_to is None or self._tip is None:
            return None
        return max(self._tip - self.caught_up_to, timedelta(0))

    def plan(self, *, batch: int, epoch: int, cursors: Sequence[Cursor], trim: Trim | None) -> BatchPlan | None:
        """The next batch of the stream, as `Planner.plan`."""
        self._tip = self._tip or self._client.now() + CLOCK_ERROR
        return self._stream.plan(batch=batch, epoch=epoch, cursors=cursors, trim=trim)

    def portion(self, due: SpanDue, trim: Trim | None, records: int) -> Portion | None:
        """What the next batch takes of a span, as `SpanPlanner.portion`."""
        return self._spans.portion(due, trim, records)

    def observe(self, commit: BatchCommit) -> None:
        """Learn from a finished batch."""
        if not commit.is_requested:  # which tells nothing of what the stream gives next
            self._stream.observe(commit)
        self._spans.observe(commit)
