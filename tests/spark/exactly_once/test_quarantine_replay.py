"""What was rejected is replayed by a mended transform, and drivers are killed meanwhile: it is in the table once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lab.chain import Lab, Labs, Table
from lab.lake import commits_of, plans_of
from lab.links import AtStep
from lab.verdict import require_exactly_once
from lakestream.faults import STEPS
from lakestream.main import app
from lakestream.model import BatchPlan

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

HALF_REJECTED = """
SELECT *, CASE WHEN pmod(hash(order_id), 2) = 0 THEN '__HIVE_DEFAULT_PARTITION__'
               ELSE date_format(created_at, 'yyyy-MM-dd') END AS dt
FROM events
"""
"""No sink can take that partition. Orders are rejected with all their versions, so that a table that is kept by key
ends as if none had been: deletes are remembered for a while only."""
BURSTS = 12

_KILLS = [AtStep(step, 1 + number % 2) for number, step in enumerate(STEPS)]
"""The second time it is not the batch that the kill before has left."""


def quarantine(lab: Lab, *arguments: str) -> str:
    """What `lakestream quarantine` says."""
    lab.save()
    with lab.writer.environment():
        done = CliRunner().invoke(app, ["quarantine", *arguments, "-f", str(lab.path), "--writer", lab.writer.name])
    return done.output.strip()


def newest_plan(lab: Lab) -> BatchPlan:
    with lab.writer.environment():
        return plans_of(lab.writer)[-1]


def run(lab: Lab, spark: SparkSession, kills: Sequence[AtStep] = _KILLS) -> None:
    spec = lab.document["spec"]
    mended, spec["transform"] = spec["transform"], HALF_REJECTED
    lab.stream.put(BURSTS)
    lab.catch_up(spark)
    assert "deleteWhen that the document has, and would be again" in quarantine(lab, "replay")
    spec["transform"] = mended
    assert quarantine(lab, "replay").startswith("replay 1: ")
    assert "replay 1 has come to part 0 of" in quarantine(lab, "replay")
    for kill in kills:
        kill.carry_out(lab)
        assert newest_plan(lab).readmits, f"{kill} was of no replay\n{lab.evidence()}"
        lab.story.append(f"{lab.drivers[-1].name}: {kill}")
    lab.stream.put(2)
    lab.catch_up(spark)
    assert quarantine(lab, "list").endswith("replay 1 is done")
    with lab.writer.environment():
        readmitted = [commit for commit in commits_of(lab.writer) if commit.readmits]
    assert len(readmitted) > len(kills) - 2, "several batches are one replay"
    assert any(commit.quarantined for commit in readmitted), "what is no event is in quarantine again"
    assert "nothing to replay: " in quarantine(lab, "replay")
    require_exactly_once(lab, spark)


# A table of Hudi is in test_backfill.py, which takes files by the same requests and plans, and the other steps in
# test_span.py; to JSON, whose files are there or not, the step behind this one's last is none of its own.
@pytest.mark.parametrize(("table", "place"), [(Table.JSON, "s3")])
def test_what_is_replayed_is_in_the_table_once_whenever_a_driver_is_killed(
    table: Table, place: str, labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(table, place)
    with lab.explained():
        run(lab, spark_on_s3, [kill for kill in _KILLS if kill.step in ("half_read", "written")])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "s3"])
@pytest.mark.parametrize("table", Table)
def test_the_same_for_every_sink(table: Table, place: str, labs: Labs, spark_on_s3: SparkSession) -> None:
    run(labs.make(table, place), spark_on_s3)
