"""Drivers are killed at each named step and at random instants; then nothing is missing, doubled or altered."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lab.chain import Chain, Labs, Table, let_happen, take_more
from lab.links import SIGTERM, SIGTERM_FOR_ALL, AtStep, Rivals, plan_kills
from lab.verdict import require_exactly_once
from lakestream.faults import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

CHAIN = Chain(Table.MOR, "folder", (Rivals(), AtStep("half_read", 3)))
"""The other steps, other tables and places are killed where something else is tested as well: merge-on-read in
`test_restore`, JSON in a folder in `test_span`, JSON on S3 in `test_quarantine_replay`, a copy-on-write table in
`test_backfill`, one of version 9 on S3 in `test_catalog`, tables without keys in `test_edited_definition` and
`test_hudi_kill`. Random instants are for the slow chains below, and for `make chaos`."""

ALL_CHAINS = [
    Chain(table, place, (Rivals(), *kills, SIGTERM, SIGTERM_FOR_ALL))
    for table in Table
    for place in ("folder", "s3")
    for kills in [plan_kills(f"{table} on {place}, in full", 20, STEPS * 2)]
]


def run(chain: Chain, labs: Labs, spark: SparkSession) -> None:
    lab = labs.make(chain.table, chain.place)
    with lab.explained():
        let_happen(lab, chain.links)
        take_more(lab)
        lab.drain()
    require_exactly_once(lab, spark)


def test_nothing_is_lost_or_doubled_whenever_a_driver_is_killed(labs: Labs, spark_on_s3: SparkSession) -> None:
    run(CHAIN, labs, spark_on_s3)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("chain", ALL_CHAINS, ids=lambda chain: chain.name)
def test_the_same_with_twice_the_steps_and_twenty_instants_for_every_sink(
    chain: Chain, labs: Labs, spark_on_s3: SparkSession
) -> None:
    run(chain, labs, spark_on_s3)
