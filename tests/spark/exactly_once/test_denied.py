"""S3 denies what the driver needs, for a while: it waits, and goes on by itself."""

from __future__ import annotations

from signal import SIGCONT, SIGSTOP, SIGTERM

import pytest
from pyspark.sql import SparkSession

from chaos.s3 import Effect, S3Fault, S3Proxy
from lab.chain import Labs, Table
from lab.verdict import require_exactly_once

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_TOLD = "A right that was given just now is not known everywhere at once"


def test_a_right_that_comes_while_the_table_is_made_is_waited_for(
    shaky: S3Proxy, labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(Table.MOR, "s3", s3=shaky.url)
    lab.stream.put(1)
    shaky.faults.add(S3Fault(Effect.FORBID, "properties"))
    with lab.explained():
        driver = lab.start()
        driver.until_logged("the storage denies access: ")
        driver.until_logged(_TOLD)
        shaky.faults.clear()
        driver.until_committed(1)
        driver.process.terminate()
        assert driver.wait() == 0
        lab.catch_up(spark_on_s3)
    require_exactly_once(lab, spark_on_s3)


def test_who_waits_for_a_right_ends_at_once_when_asked_to(shaky: S3Proxy, labs: Labs) -> None:
    lab = labs.make(Table.JSON, "s3", s3=shaky.url)
    shaky.faults.add(S3Fault(Effect.FORBID))
    with lab.explained():
        driver = lab.start()
        driver.until_logged(_TOLD)
        # It asks again after a while, however late it is looked at.
        driver.process.send_signal(SIGSTOP)
        asked = shaky.faults.struck
        driver.process.terminate()
        driver.process.send_signal(SIGCONT)
        # Python that is not up yet has no handler.
        assert driver.wait() in (0, -SIGTERM)
        assert shaky.faults.struck == asked


def test_a_rollback_that_was_cut_off_is_gone_on_with_where_the_lake_is_not_the_machines_disk(
    shaky: S3Proxy, labs: Labs, spark_on_s3: SparkSession
) -> None:
    """Hudi writes blocks that undo log files, and markers of these, before it deletes; once more, it looks for those of
    the time before on the local disk."""
    lab = labs.make(Table.MOR, "s3", s3=shaky.url)
    lab.stream.put(2)
    with lab.explained():
        lab.catch_up(spark_on_s3)
        lab.stream.put(1)
        crashed = lab.start(crash_at="written")
        assert crashed.wait() != 0
        shaky.faults.add(S3Fault(Effect.FORBID, "delete"))
        denied = lab.start()
        denied.until_logged(".deltacommit.inflight: delete on ")
        denied.process.kill()
        denied.wait()
        shaky.faults.clear()
        lab.catch_up(spark_on_s3)
    require_exactly_once(lab, spark_on_s3)
