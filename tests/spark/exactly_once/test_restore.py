"""A table is taken back while drivers are killed at each step, and in the middle of Hudi's own: its stream is read
again from there, and every event is in the table once. So it is after work by hand in which drivers were killed."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lab.chain import Lab, Labs, Table
from lab.driver import Victim
from lab.lake import commits_of
from lab.links import VISIBLE, AtStep
from lab.stream import MAX_RECORDS_PER_BATCH
from lab.verdict import require_exactly_once
from lakestream.main import app
from lakestream.statuses import PLANNED

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

BEHIND = 6
"""Batches that are undone, beside those that drivers undo before they are killed."""
STEPS = ("planned", "written", "sink_committed", "committed")
"""The first and the last are the log's; `make test` has these in `tests/unit/jobs/test_restoring.py`, without Hudi."""


def table(lab: Lab, *arguments: str, status: int = 0) -> str:
    """What `lakestream table` says."""
    lab.save()
    with lab.writer.environment():
        done = CliRunner().invoke(app, ["table", *arguments, "-f", str(lab.path), "--writer", lab.writer.name])
    assert done.exit_code == status, done.output
    return done.output


def ask(lab: Lab, *arguments: str) -> int:
    """Ask for work on the table; the number of the request."""
    found = re.search(r"^request (\d+):", told := table(lab, *arguments, "--yes"), re.MULTILINE)
    assert found, told
    return int(found[1])


def save(lab: Lab, spark: SparkSession) -> None:
    """A savepoint, behind which there is another batch."""
    lab.stream.put(3)
    lab.catch_up(spark)
    ask(lab, "savepoint", "create")
    lab.stream.put(1)
    lab.catch_up(spark)


def save_and_compact(lab: Lab, spark: SparkSession) -> None:
    """The same, and what waits is compacted; the driver is killed in the middle of that."""
    hudi = lab.document["spec"]["writers"][0]["hudi"]
    own, hudi["compaction"] = hudi["compaction"], {"everyCommits": 100}
    lab.stream.put(3)
    lab.catch_up(spark)
    ask(lab, "savepoint", "create")
    lab.stream.put(1)
    with lab.traffic():
        driver = lab.start()
        driver.until_committed(2)
        driver.until(lambda: "was done" in table(lab), "the savepoint")
        number = ask(lab, "compact")
        driver.until_logged(f"request {number}: ")
        driver.kill(Victim.ALL)
        assert driver.wait() == -signal.SIGKILL
    lab.story.append(f"{driver.name}: killed as it compacted, behind the savepoint")
    hudi["compaction"] = own


def be_killed_within(lab: Lab, undone: int) -> None:
    """Hudi is undoing a commit, behind so many."""
    timeline = Path(lab.writer.path, ".hoodie")

    def rollbacks() -> int:
        # Of each, the last object that is written before it deletes anything.
        return sum(1 for folder in (timeline, timeline / "timeline") for _ in folder.glob("*.rollback.inflight"))

    before = rollbacks()
    driver = lab.start()
    driver.until(lambda: rollbacks() > before + undone, "a restore")
    driver.kill(Victim.ALL)
    assert driver.wait() == -signal.SIGKILL
    lab.story.append(f"{driver.name}: killed within Hudi's restore")


def restored_batches(lab: Lab) -> list[int]:
    with lab.writer.environment():
        return [commit.batch for commit in commits_of(lab.writer) if commit.restore is not None]


def run(
    lab: Lab,
    spark: SparkSession,
    within: Sequence[int],
    *,
    save: Callable[[Lab, SparkSession], None] = save,
    steps: Sequence[str] = STEPS,
) -> None:
    save(lab, spark)
    # By when a driver is killed, it may have come a commit further than it was waited for.
    lab.stream.put(BEHIND + sum(undone + 1 for undone in within))
    lab.catch_up(spark)
    assert "was done" in (told := table(lab)), told
    (savepoint,) = table(lab, "savepoint", "list").splitlines()
    instant = savepoint.split()[0]
    told = table(lab, "restore", "--to", instant, status=PLANNED)
    assert "read again, each record once: the stream from " in told, told
    assert "forgotten: " in told, "each burst has unusable records"
    number = ask(lab, "restore", "--to", instant)
    with lab.traffic():
        for step in steps:
            for undone in within if step == "sink_committed" else ():
                be_killed_within(lab, undone)
            AtStep(step, 1).carry_out(lab)
            lab.story.append(f"{lab.drivers[-1].name}: killed at {step}")
    # What the killed ones did not get to, in a few batches: on a busy machine they live for minutes.
    lab.document["spec"]["trigger"]["maxRecordsPerBatch"] = 100 * MAX_RECORDS_PER_BATCH
    lab.stream.put(2)
    lab.catch_up(spark)
    told = table(lab)
    assert f"request {number} (restore) was done" in told, told
    assert len(restored_batches(lab)) == 1, "however often a driver was killed"
    # One with the driver's batches under way, a moment back, which reads on from where it stands.
    newest = [line.split()[0] for line in told.splitlines() if "commit  " in line][-2]
    ask(lab, "savepoint", "delete", instant)
    lab.catch_up(spark)
    number = ask(lab, "restore", "--to", newest)
    lab.stream.put(1)
    lab.catch_up(spark)
    told = table(lab)
    assert f"request {number} (restore) was done" in told, told
    assert table(lab, "savepoint", "list") == "", "that of the restore is gone"
    assert len(restored_batches(lab)) == 2
    require_exactly_once(lab, spark)


def test_what_is_undone_is_read_again_once_whenever_drivers_are_killed(labs: Labs, spark_on_s3: SparkSession) -> None:
    lab = labs.make(Table.MOR)
    with lab.explained():
        run(lab, spark_on_s3, [0], save=save_and_compact, steps=VISIBLE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "place", "within"),
    [
        (Table.MOR_9, "folder", [0, 0, 1, 1]),
        (Table.MOR_9, "s3", []),
        (Table.MOR, "folder", [0, 0, 1, 1]),
        (Table.INSERT, "folder", [1]),
        (Table.MOR_INSERT, "folder", [1]),
    ],
)
def test_the_same_for_other_sinks_and_within_more_commits(
    kind: Table, place: str, within: list[int], labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(kind, place)
    with lab.explained():
        run(lab, spark_on_s3, within)
