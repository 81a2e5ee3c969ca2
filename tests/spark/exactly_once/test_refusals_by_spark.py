"""What a driver refuses when Spark has looked at it: schema, SQL and the table itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.chain import Labs, Table
from lab.lake import commits_of, plans_of
from lakestream.errors import LakeStreamError
from lakestream.exits import exit_of
from lakestream.statuses import Exit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.slow  # the sink's own refusal is in test_hudi_sink.py
def test_a_table_that_nobody_owns_yet_refuses_another_key_itself(labs: Labs, spark: SparkSession) -> None:
    lab = labs.make(Table.COW)
    lab.stream.put(1)
    lab.catch_up(spark)
    # As if a release that did not keep it had made the table.
    Path(lab.writer.path, ".hoodie/lakestream/owner").unlink()
    lab.document["spec"]["checkpoint"] += "-2"
    lab.document["spec"]["writers"][0]["hudi"]["recordKey"] = ["event_id"]
    with pytest.raises(LakeStreamError, match=r"hudi.recordKey: the table at .* has 'order_id', .* 'event_id'") as told:
        lab.catch_up(spark)
    assert exit_of(told.value) is Exit.SETTINGS


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        pytest.param("schema", "order_id strin, version long", "spec.schema: ", marks=pytest.mark.slow),
        ("transform", "SELECT event_id, version FROM events", "order_id"),
    ],
)
def test_a_document_that_spark_cannot_follow_is_refused_before_anything_is_planned(
    labs: Labs, spark: SparkSession, field: str, value: str, shown: str
) -> None:
    lab = labs.make(Table.MOR)
    lab.stream.put(1)
    lab.document["spec"][field] = value
    with pytest.raises(LakeStreamError, match=shown) as told:
        lab.catch_up(spark)
    assert exit_of(told.value) is Exit.SETTINGS
    with lab.writer.environment():
        assert (plans_of(lab.writer), commits_of(lab.writer)) == ([], [])
