"""The planner of a writer: when it has what had arrived when it began."""

from __future__ import annotations

from datetime import timedelta

from lakestream.kinesis import PlannerSettings, StreamPlanner
from lakestream.kinesis.port import CLOCK_ERROR
from lakestream.testing.fake_kinesis import FakeKinesis


def test_it_tells_when_all_that_was_there_at_first_is_planned() -> None:
    stream, settings = FakeKinesis(), PlannerSettings("TRIM_HORIZON", threads=1)
    planner = StreamPlanner(stream, settings, slots=lambda: 4, sleep=stream.sleep)
    assert planner.missing is None
    shard = stream.open_shards()[0]
    stream.put(shard, b"a moment ago, by a clock that may be behind")
    planner.plan(batch=0, epoch=1, cursors=(), trim=None)
    assert planner.missing == settings.settle + CLOCK_ERROR
    stream.advance(settings.settle + CLOCK_ERROR)
    stream.put(shard, b"later")
    plan = planner.plan(batch=0, epoch=1, cursors=(), trim=None)
    assert plan is not None
    assert plan.ranges, "what was there at first"
    assert planner.missing == timedelta(0)
