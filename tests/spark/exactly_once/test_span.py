"""A span of a stream that is resharded is read once more beside it, and drivers are killed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lab.chain import Lab, Labs, Table
from lab.lake import commits_of, plans_of, snapshot_faults, timeline_faults, uri_of
from lab.links import EARLY_SIGTERM, SIGTERM_FOR_ALL, AtStep, Link
from lab.stream import MAX_RECORDS_PER_BATCH, merge, split
from lab.verdict import require_exactly_once
from lakestream.faults import STEPS
from lakestream.main import app

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

_KILLS = [AtStep(step, 1 + number % 2) for number, step in enumerate(STEPS)]
"""The second time it is not the batch that the kill before has left."""
BURSTS = 12


def backfill(lab: Lab, *arguments: str) -> str:
    """What `lakestream backfill` says."""
    lab.save()
    with lab.writer.environment(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        done = CliRunner().invoke(app, ["backfill", *arguments, "-f", str(lab.path), "--writer", lab.writer.name])
    return done.output.strip()


def put_resharded(lab: Lab) -> None:
    """Records in shards of three generations."""
    server, name = lab.stream.server, lab.stream.name
    for change in (split, merge, split):
        lab.stream.put(BURSTS // 4)
        change(server, name)
    lab.stream.put(BURSTS // 4)
    # Kinesis tells its time in whole seconds, and LATEST is the least that it may be: the stream itself has the rest.
    time.sleep(1.1)


def run(lab: Lab, spark: SparkSession, kills: Sequence[Link]) -> None:
    lab.document["spec"]["source"]["kinesis"]["startingPosition"] = "LATEST"
    put_resharded(lab)
    lab.catch_up(spark)
    lab.stream.put(2)
    lab.catch_up(spark)
    said = backfill(lab, "--from", "50 minutes ago")
    assert said.startswith("backfill 1: what arrived in "), said
    assert ("is left out: there the writer has begun to read" in said) == (not lab.table.is_snapshot), said
    assert "has taken 0 records; the writer's driver goes on with it" in backfill(lab, "status")
    for number, kill in enumerate(kills):
        kill.carry_out(lab)
        with lab.writer.environment():
            newest = plans_of(lab.writer)[-1]
        lab.story.append(f"{lab.drivers[-1].name}: {kill}; {'of the span' if newest.spans else 'of the stream'}")
        (split, merge)[number % 2](lab.stream.server, lab.stream.name)
        lab.stream.put(1)
    with lab.traffic():
        SIGTERM_FOR_ALL.carry_out(lab)
    # What the killed ones did not get to, in a few batches.
    lab.document["spec"]["trigger"]["maxRecordsPerBatch"] = 100 * MAX_RECORDS_PER_BATCH
    lab.stream.put(2)
    lab.catch_up(spark)
    with lab.writer.environment():
        commits = commits_of(lab.writer)
    of_span = [commit for commit in commits if commit.of_span]
    taken = sum(commit.records for commit in of_span)
    assert len(of_span) > 1, "several batches are one span"
    assert backfill(lab, "status").startswith("backfill 1 is done: ")
    assert backfill(lab, "status").endswith(f"UTC, {taken:,} records")
    require_right(lab, spark, taken)


def require_right(lab: Lab, spark: SparkSession, taken: int) -> None:
    if not lab.table.is_snapshot:
        require_exactly_once(lab, spark)
        return
    # Part of the span was in the table: the newest versions are, and nothing was committed twice.
    with lab.writer.environment():
        commits = commits_of(lab.writer)
    truth, batches = lab.stream.truth(), [commit.batch for commit in commits if commit.sink is not None]
    table = spark.read.format("hudi").load(uri_of(lab.writer.path))
    faults = snapshot_faults(truth, table, lab.folder / "dump") + timeline_faults(lab.writer, batches, spark)
    assert not faults, "\n".join(["", *faults, lab.evidence()])
    streamed = sum(commit.records for commit in commits if not commit.is_requested)
    assert streamed < truth.records < streamed + taken, "what was before the writer came, and what it has read"
    lab.close()


# The one chain of JSON in a folder; at the step that is left out it is killed in test_quarantine_replay.py.
def test_a_span_of_the_stream_is_in_the_table_once_whenever_a_driver_is_killed(
    labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(Table.JSON)
    with lab.explained():
        run(lab, spark_on_s3, [EARLY_SIGTERM, *(kill for kill in _KILLS if kill.step != "half_read")])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "s3"])
@pytest.mark.parametrize("table", Table)
def test_the_same_at_all_steps_for_every_sink(table: Table, place: str, labs: Labs, spark_on_s3: SparkSession) -> None:
    run(labs.make(table, place), spark_on_s3, _KILLS)
