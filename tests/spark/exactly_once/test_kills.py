"""Drivers are killed at each named step and at random instants; then nothing is missing, doubled or altered."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lab.chain import Chain, Labs, Table, run_chain
from lab.links import VISIBLE, Rivals, Since, Terminated, plan_kills
from lab.verdict import require_exactly_once
from lakestream.faults import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

_SIGTERM = Terminated(Since.COMMIT, group=False)
_SIGTERM_FOR_ALL = Terminated(Since.COMMIT, group=True)
_EARLY_SIGTERM = Terminated(Since.EPOCH, group=True)

CHAINS = [
    Chain(Table.MOR, "folder", (Rivals(), *plan_kills("mor", 0))),
    Chain(Table.JSON, "folder", (_EARLY_SIGTERM, *plan_kills("json", 0, ("half_read", *VISIBLE)), _SIGTERM_FOR_ALL)),
    Chain(Table.MOR_INSERT, "folder", plan_kills("clustered inserts", 0, VISIBLE)),
]
"""All steps, and those at the sink for kinds of table and places that no other chain has: a copy-on-write table is in
`test_backfill`, JSON on S3 in `test_quarantine_replay`, a table of version 9 on S3 in `test_catalog`; others without
keys are killed at these steps in `test_hudi_kill`. The longest chains first. Random instants are for the slow chains
below, and for `make chaos`."""

ALL_CHAINS = [
    Chain(table, place, (Rivals(), *kills, _SIGTERM, _SIGTERM_FOR_ALL))
    for table in Table
    for place in ("folder", "s3")
    for kills in [plan_kills(f"{table} on {place}, in full", 20, STEPS * 2)]
]


def run(chain: Chain, labs: Labs, spark: SparkSession) -> None:
    lab = labs.make(chain.table, chain.place)
    with lab.explained():
        run_chain(lab, chain.links)
    require_exactly_once(lab, spark)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_nothing_is_lost_or_doubled_whenever_a_driver_is_killed(
    chain: Chain, labs: Labs, spark_on_s3: SparkSession
) -> None:
    run(chain, labs, spark_on_s3)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chain", ALL_CHAINS, ids=lambda chain: chain.name)
def test_the_same_with_twice_the_steps_and_twenty_instants_for_every_sink(
    chain: Chain, labs: Labs, spark_on_s3: SparkSession
) -> None:
    run(chain, labs, spark_on_s3)
