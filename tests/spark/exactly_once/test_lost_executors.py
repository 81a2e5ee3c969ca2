"""Executors die with the batch that they hold, again and again; the driver goes on, and it is read again."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lab.chain import BURSTS, Labs, Table, end_with_all
from lab.links import Since
from lab.verdict import require_exactly_once
from lakestream.control.files import read_progress

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("table", "deaths"),
    [
        (Table.MOR, 1),
        pytest.param(Table.MOR, 3, marks=pytest.mark.slow),
        pytest.param(Table.JSON, 3, marks=pytest.mark.slow),
    ],
)
def test_nothing_is_lost_or_doubled_when_executors_die(
    labs: Labs, table: Table, deaths: int, spark: SparkSession
) -> None:
    lab = labs.make(table, cluster=True)
    lab.stream.put(BURSTS)
    driver = lab.start()
    with lab.traffic():
        driver.until_logged(Since.COMMIT.line)
        for death in range(deaths):
            committed = len(read_progress(driver.progress))
            # At once, and a little into the work of later batches.
            driver.until_committed(committed + death)
            driver.kill_executors()
            driver.until_committed(committed + death + 2)
    lab.stream.put(BURSTS)
    end_with_all(lab)
    assert len(lab.drivers) == 1, "one driver lives through all of it"
    require_exactly_once(lab, spark)
