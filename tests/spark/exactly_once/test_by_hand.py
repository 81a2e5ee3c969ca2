"""Somebody asks for work on a table while drivers are killed: it is done, and every event is in the table once. Of
`make test`, test_restore.py begins with that."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lab.chain import Lab, Labs, Table
from lab.links import AtStep
from lab.verdict import require_exactly_once
from lakestream.main import app

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def table(lab: Lab, *arguments: str) -> str:
    """What `lakestream table` says."""
    with lab.writer.environment():
        done = CliRunner().invoke(app, ["table", *arguments, "-f", str(lab.path), "--writer", lab.writer.name])
    return done.output


def require_asked(lab: Lab, *arguments: str) -> None:
    assert "request " in (told := table(lab, *arguments, "--yes")), told


@pytest.mark.parametrize("kind", [Table.MOR, Table.MOR_9])
@pytest.mark.parametrize("place", ["folder", "s3"])
def test_what_is_asked_for_is_done_whenever_drivers_are_killed(
    kind: Table, place: str, labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(kind, place)
    lab.document["spec"]["writers"][0]["hudi"]["compaction"] = {"everyCommits": 100}
    lab.stream.put(4)
    lab.catch_up(spark_on_s3)
    # At its first commit a driver does all of it by itself; at the second one it has taken what was asked for.
    for number, (work, step) in enumerate(
        [
            (("savepoint", "create"), "written"),
            (("compact",), "sink_committed"),
            (("clean",), "written"),
        ],
        start=1,
    ):
        require_asked(lab, *work)
        with lab.traffic():
            AtStep(step, 2).carry_out(lab)
        lab.stream.put(2)
        lab.catch_up(spark_on_s3)
        assert f"request {number} (" in (told := table(lab)), told
        assert "was done" in told, f"{told}\n{lab.evidence()}"
    (savepoint,) = table(lab, "savepoint", "list").splitlines()
    require_asked(lab, "savepoint", "delete", savepoint.split()[0])
    lab.catch_up(spark_on_s3)
    assert table(lab, "savepoint", "list") == ""
    require_exactly_once(lab, spark_on_s3)
