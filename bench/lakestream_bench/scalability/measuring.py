"""Measures capacity: `lakestream ingest` on so many task slots, and loads that are held for some seconds each.

The local Kinesis and the producer run on the same cores: the figures are those of a machine that does all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakestream_bench._ingestion import STREAM, Ingestion, Orders, Trigger, ingest
from lakestream_bench._processes import failure
from lakestream_bench.scalability.figures import Measured, Step, judge
from lakestream_localkinesis.testing import local_kinesis

LOADS = (500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000)
"""Records per second that are tried."""
SHARDS = 16
WARM_UP_RATE, WARM_UP_SECONDS = 1_500, 30.0
"""The JVM compiles what batches run."""
DRAIN_SECONDS = 120.0


@dataclass(frozen=True)
class Setting:
    """How a load is held."""

    writer: str
    interval_seconds: int
    goal_seconds: float
    step_seconds: float


def search(loads: Sequence[int], at_least: float, hold: Callable[[int], Step]) -> list[Step]:
    """Halve what is left of the loads until the highest one is found that is kept; all that was tried, in order.

    Args:
        loads: ascending.
        at_least: a load known to be kept, by fewer slots.
        hold: tries a load.
    """
    steps: list[Step] = []
    low = sum(load < at_least for load in loads)
    high = len(loads)
    while low < high:
        middle = (low + high) // 2
        step = hold(loads[middle])
        steps.append(step)
        if step.kept and step.was_made:
            low = middle + 1
        else:
            high = middle
    return steps


def measure(slots: int, setting: Setting, folder: Path, at_least: float) -> Measured:
    """Find the capacity of so many slots.

    Raises:
        RuntimeError: the driver did not go on; the message has the end of its log.
    """
    with local_kinesis() as server:
        server.create_stream(STREAM, shards=SHARDS)
        orders = Orders(server)
        trigger = Trigger(f"{setting.interval_seconds}s", 1_000_000)
        with ingest(server, folder, setting.writer, trigger, until_caught_up=False, slots=slots) as run:
            orders.put(SHARDS)
            run.wait_for(1)
            _hold(orders, WARM_UP_RATE, WARM_UP_SECONDS)
            _drain(orders, run)

            def hold(load: int) -> Step:
                before = len(run.batches())
                sent = _hold(orders, load, setting.step_seconds)
                step = judge(load, sent, run.batches()[before:], setting.goal_seconds)
                _drain(orders, run)
                return step

            return Measured(slots, tuple(search(LOADS, at_least, hold)))


def _hold(orders: Orders, rate: int, seconds: float) -> float:
    """Send at a rate; returns the records per second that the stream took."""
    before, began = orders.acknowledged, time.monotonic()
    for _ in orders.stream(rate, seconds):
        pass
    return (orders.acknowledged - before) / (time.monotonic() - began)


def _drain(orders: Orders, run: Ingestion) -> None:
    """Wait until all that was sent is in the table, so that the next step begins with nothing."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while sum(batch.records for batch in run.batches()) < orders.acknowledged:
        if run.process.poll() is not None or time.monotonic() > deadline:
            raise failure("not all was read", run.log)
        time.sleep(0.2)
