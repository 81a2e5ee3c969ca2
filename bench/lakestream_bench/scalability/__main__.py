"""Demand and capacity: measured on this machine, modelled to 10,000 shards.

    python -m lakestream_bench.scalability [--writer mor] [--slots 1 2] [--fit batch_times.json]

writes `build/compare/scalability.json`, which `lakestream compare` puts into its report; five minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lakestream_bench._ingestion import WRITERS, now
from lakestream_bench._options import FIT, out_file
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling
from lakestream_bench.scalability import measuring
from lakestream_bench.scalability.figures import Measured, Scalability
from lakestream_bench.scalability.measuring import Setting, measure
from lakestream_bench.scalability.modelling import SHARDS, capacity, demand
from lakestream_bench.simulation.costs import BatchCosts, load_costs

INTERVAL_SECONDS = 2
GOAL_SECONDS = 10.0
STEP_SECONDS = 30.0


def find(measured: Sequence[Measured], setting: Setting, costs: BatchCosts, load_average: float) -> Scalability:
    """What was measured, and what the model says."""
    interval, goal = setting.interval_seconds, setting.goal_seconds
    return Scalability(
        measured_at=now(),
        cores=os.cpu_count() or 1,
        load_average=load_average,
        writer=setting.writer,
        interval_seconds=interval,
        goal_seconds=goal,
        step_seconds=setting.step_seconds,
        measured=tuple(measured),
        model=costs.source,
        modelled_capacity=tuple(capacity(one.slots, measuring.SHARDS, costs, interval, goal) for one in measured),
        modelled_demand=tuple(one for shards in SHARDS if (one := demand(shards, costs, interval, goal)) is not None),
    )


def main() -> int:
    """Print two tables, write the figures."""
    parser = argparse.ArgumentParser(
        prog="lakestream_bench.scalability", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=out_file, default=Path("build/compare/scalability.json"), help="gets the figures")
    parser.add_argument("--writer", choices=list(WRITERS), default="mor")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 2], help="task slots to measure, ascending")
    parser.add_argument("--fit", type=Path, help=FIT)
    chosen = parser.parse_args()
    if chosen.slots != sorted(set(chosen.slots)) or chosen.slots[0] < 1:
        parser.error(f"--slots: give numbers of slots from 1 on, ascending, got {chosen.slots}")
    setting = Setting(chosen.writer, INTERVAL_SECONDS, GOAL_SECONDS, STEP_SECONDS)
    try:
        costs = load_costs(chosen.writer, chosen.fit)
    except (OSError, ValueError) as error:
        parser.error(f"--fit: {error}")
    load_average = os.getloadavg()[0]
    measured: list[Measured] = []
    telling = Telling(len(chosen.slots))
    with tempfile.TemporaryDirectory(prefix="lakestream-bench-") as scratch:
        for slots in chosen.slots:
            with telling.measuring(f"{slots} slots"):
                at_least = max((one.capacity for one in measured), default=0.0)
                measured.append(measure(slots, setting, Path(scratch) / str(slots), at_least))
    found = find(measured, setting, costs, load_average)
    found.save(chosen.out)
    _print(found)
    return 0


def _print(found: Scalability) -> None:
    modelled = {one.slots: one.records_per_second for one in found.modelled_capacity}
    print(f"goal: visible {found.goal_seconds:g} s after arrival; {found.writer}, {found.cores} cores")
    print(f"{'slots':>6}{'records/s, measured':>21}{'modelled':>10}")
    for one in found.measured:
        print(f"{one.slots:>6}{one.capacity:>21,.0f}{modelled[one.slots]:>10,.0f}")
    print(f"\n{'shards':>7}{'records/s':>12}{'slots, modelled':>17}")
    for need in found.modelled_demand:
        print(f"{need.shards:>7,}{need.records_per_second:>12,.0f}{need.slots:>17,}")
    if not found.modelled_demand:
        print("by the model no number of slots keeps the goal")


if __name__ == "__main__":
    with no_process_left():
        sys.exit(main())
