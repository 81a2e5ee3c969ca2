"""Whether a lake has what its stream has, exactly once."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lab.chain import Lab, Table
from lab.lake import (
    commits_of,
    insert_faults,
    json_faults,
    log_faults,
    quarantine_faults,
    snapshot_faults,
    surviving,
    timeline_faults,
    uri_of,
)


def require_exactly_once(lab: Lab, spark: SparkSession) -> None:
    """Hold the lake of a drained stream against what Kinesis has; then clear up."""
    truth, writer = lab.stream.truth(), lab.writer
    faults = log_faults(truth, writer) + quarantine_faults(truth, writer)
    if lab.table is Table.JSON:
        faults += json_faults(truth, writer)
    else:
        table, dump = spark.read.format("hudi").load(uri_of(writer.path)), lab.folder / "dump"
        faults += (snapshot_faults if lab.table.is_snapshot else insert_faults)(truth, table, dump)
        with writer.environment():
            batches = [commit.batch for commit in surviving(commits_of(writer)) if commit.sink is not None]
        faults += timeline_faults(writer, batches, spark)
    assert not faults, "\n".join(["", *faults, lab.evidence()])
    lab.close()
