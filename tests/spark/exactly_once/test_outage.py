"""S3 is away for longer than a driver may go on unseen: it ends all that it is at, waits, and goes on in its place."""

from __future__ import annotations

from signal import SIGTERM

import pytest
from pyspark.sql import SparkSession

from chaos.s3 import Effect, S3Fault, S3Proxy
from lab.chain import Labs, Table, take_more
from lab.verdict import require_exactly_once
from lakestream.control.files import read_progress
from lakestream.log import FenceSettings
from lakestream.statuses import Exit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_a_driver_waits_an_outage_out_and_takes_a_new_epoch(
    shaky: S3Proxy, labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(Table.JSON, "s3", s3=shaky.url, patience=FenceSettings().patience.total_seconds())
    with lab.explained():
        with lab.traffic():
            driver = lab.start()
            driver.until_committed(2)
            shaky.faults.add(S3Fault(Effect.CUT))
            driver.until_logged("the storage of the checkpoint does not answer: ")
            before = len(read_progress(driver.progress))
            shaky.faults.clear()
            driver.until_committed(before + 2)
        driver.process.terminate()
        assert driver.wait() == 0
        assert {batch.epoch for batch in read_progress(driver.progress)} == {1, 2}
        with lab.traffic():
            # One that is to end does not wait for the storage; what it had in hand, if anything, is the next driver's.
            asked = lab.start()
            asked.until_committed(1)
            shaky.faults.add(S3Fault(Effect.CUT))
            asked.process.terminate()
            assert asked.wait() in (0, Exit.STORAGE)
            shaky.faults.clear()
        take_more(lab)
        lab.catch_up(spark_on_s3)
    require_exactly_once(lab, spark_on_s3)


def test_who_waits_for_the_storage_with_nothing_in_hand_ends_at_once(shaky: S3Proxy, labs: Labs) -> None:
    lab = labs.make(Table.JSON, "s3", s3=shaky.url)
    shaky.faults.add(S3Fault(Effect.CUT))
    with lab.explained():
        driver = lab.start()
        driver.until(lambda: shaky.faults.struck > 1, "a request for its log")
        driver.process.terminate()
        assert driver.wait(60) == -SIGTERM
