"""Drivers are killed at each named step and at random instants; then nothing is missing, doubled or altered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from lab.chain import Chain, Lab, Labs, Table, run_chain
from lab.links import Rivals, Since, Terminated, plan_kills
from lab.verdict import require_exactly_once
from lakestream.faults import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

AT_ONCE = max(2, os.cpu_count() or 1)
"""Chains that run at the same time: a start is mostly one thread's work."""

_SIGTERM = (Terminated(Since.COMMIT, group=True), Terminated(Since.COMMIT, group=False))
_EARLY_SIGTERM = Terminated(Since.EPOCH, group=True)

CHAINS = [
    Chain(Table.MOR, "s3", plan_kills("mor on s3", instants=2)),
    Chain(Table.COW, "folder", (*plan_kills("cow", instants=3), _EARLY_SIGTERM)),
    Chain(Table.MOR, "folder", (Rivals(), *plan_kills("mor", instants=4), *_SIGTERM)),
    Chain(Table.JSON, "folder", (Rivals(), *plan_kills("json", instants=6), *_SIGTERM)),
    Chain(Table.JSON, "s3", plan_kills("json on s3", instants=4)),
    Chain(Table.INSERT, "folder", plan_kills("insert", instants=1, steps=("written", "sink_committed"))),
]
"""All steps for all sinks, and 20 instants; the longest chains first."""

ALL_CHAINS = [
    Chain(table, place, (Rivals(), *plan_kills(f"{table} on {place}, in full", 20, STEPS * 2), *_SIGTERM))
    for table in Table
    for place in ("folder", "s3")
]


@pytest.fixture(scope="session")
def finished(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Callable[[Chain], Lab]]:
    """Waits for a chain. All that were selected begin at once, for their drivers leave each other room."""
    selected: list[Chain] = []
    for item in request.session.items:
        chain = getattr(item, "callspec", None) and item.callspec.params.get("chain")
        if chain is not None:
            selected.append(chain)
    made = {chain: labs.make(chain.table, chain.place) for chain in selected}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running: dict[Chain, Future[None]] = {
            chain: pool.submit(run_chain, lab, chain.links) for chain, lab in made.items()
        }

        def wait(chain: Chain) -> Lab:
            try:
                running[chain].result()
            except Exception as error:
                raise AssertionError(f"{error}\n{made[chain].evidence()}") from error
            return made[chain]

        try:
            yield wait
        finally:
            # After an interrupt nobody waits for them.
            for chain, future in running.items():
                if not future.done():
                    future.cancel()
                    made[chain].end()


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_nothing_is_lost_or_doubled_whenever_a_driver_is_killed(
    chain: Chain, finished: Callable[[Chain], Lab], spark_on_s3: SparkSession
) -> None:
    require_exactly_once(finished(chain), spark_on_s3)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chain", ALL_CHAINS, ids=lambda chain: chain.name)
def test_the_same_with_twice_the_steps_and_twenty_instants_for_every_sink(
    chain: Chain, finished: Callable[[Chain], Lab], spark_on_s3: SparkSession
) -> None:
    require_exactly_once(finished(chain), spark_on_s3)
