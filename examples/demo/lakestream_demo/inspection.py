"""Reads the finished lake: audit, sizes, freshness, queries. A process of its own, so that Spark's words go to a log.

`python -m lakestream_demo.inspection FOLDER TIME` reads the run in a demo's folder, whose load began at a time, and
writes `inspection.json` there.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakestream.control import read_progress
from lakestream.spark.session import SessionSettings, build_session
from lakestream.storage import LakePath, S3Settings, Scheme, StoreSettings
from lakestream_api import Writer
from lakestream_demo.document import DemoDocument
from lakestream_demo.folders import folder_size
from lakestream_demo.freshness import Microseconds, caught_up_at, freshness
from lakestream_demo.inspected import Inspection
from lakestream_demo.queries import TABLE, ask, choose_instant, open_table, script, three_looks
from lakestream_demo.result import CheckResult, QueryResult, TableResult
from lakestream_demo.verdicts import ledger_check, quarantine_check, snapshot_check
from lakestream_demo.warmth import WarmUp
from lakestream_demo.workspace import Workspace
from lakestream_loadgen.audit import audit, compare, fold, read_json_lake, read_parquet, read_quarantine
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.ledger.reader import read_ledgers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Inspector:
    """Looks at one finished run."""

    def __init__(self, workspace: Workspace, document: DemoDocument, s3: S3Settings, load_began: datetime) -> None:
        self._workspace = workspace
        self._document = document
        self._s3 = s3
        self._load_began = load_began
        self._seconds: dict[str, float] = {}

    def inspect(self) -> Inspection:
        """Do all of it. Spark starts while the files are audited, which needs no Spark."""
        with ThreadPoolExecutor(1) as pool:
            starting = pool.submit(self._start_spark)
            with self._timed("ledger_audit"):
                rows, checks = self._audit_files()
            spark = starting.result()
        try:
            with self._timed("open_table"):
                commits = open_table(spark, self._hudi_location)
            with self._timed("snapshot_audit"):
                check, table_rows = self._audit_snapshot(spark, rows)
            with self._timed("queries"):
                assert self._document.hudi.hudi is not None
                retained = timedelta(hours=self._document.hudi.hudi.cleaning.retain_hours)
                # Half of it, to be on the safe side of a round of cleaning.
                since = f"{datetime.now(UTC) - retained / 2:%Y%m%d%H%M%S}"
                queries = self._ask(spark, choose_instant(commits, since))
        finally:
            spark.stop()
        arrivals = arrivals_by_shard(rows)
        tables = (
            self._describe(self._document.hudi, table_rows, arrivals),
            self._describe(self._document.json_files, len(rows), arrivals),
        )
        return Inspection(tables, (*checks, check), queries, self._seconds)

    @property
    def _hudi_location(self) -> str:
        return LakePath.parse(self._document.hudi.output.path).uri

    def _start_spark(self) -> SparkSession:
        with self._timed("start_spark"):
            return build_session(
                SessionSettings(
                    app_name="lakestream-demo",
                    cores=os.cpu_count() or 1,
                    hudi=True,
                    s3=self._s3 if LakePath.parse(self._hudi_location).scheme is Scheme.S3 else None,
                )
            )

    def _audit_files(self) -> tuple[pa.Table, list[CheckResult]]:
        rows = read_json_lake(self._document.json_files.output.path)
        of_json, of_hudi = (
            read_quarantine(self._quarantine(writer.name))
            for writer in (self._document.json_files, self._document.hudi)
        )
        ledgers = read_ledgers(str(self._workspace.ledger))
        verdict = audit(ledgers.entries, rows, of_json, open_ledgers=ledgers.open)
        return rows, [ledger_check(verdict), quarantine_check(of_json, of_hudi)]

    def _quarantine(self, writer: str) -> str:
        return f"{self._document.lakestream.spec.checkpoint}/{writer}/quarantine"

    def _audit_snapshot(self, spark: SparkSession, rows: pa.Table) -> tuple[CheckResult, int]:
        dump = self._workspace.snapshot
        # Hadoop would take what a URI escapes for the name.
        spark.table(TABLE).select(*EVENT_SCHEMA.names).write.parquet(f"file:{dump}")
        expected, snapshot = fold(rows), read_parquet(str(dump))
        return snapshot_check(compare(expected, snapshot), len(expected)), len(snapshot)

    def _ask(self, spark: SparkSession, instant: str) -> tuple[QueryResult, ...]:
        queries = three_looks(instant)
        self._workspace.queries.write_text(script(self._hudi_location, queries), encoding="utf-8")
        return tuple(ask(spark, query) for query in queries)

    def _describe(self, writer: Writer, rows: int, arrivals: dict[str, Microseconds]) -> TableResult:
        size = folder_size(StoreSettings(LakePath.parse(writer.output.path), self._s3))
        batches = read_progress(self._workspace.progress(writer.name))
        warm_at = WarmUp.of(writer).warm_at(batches)
        return TableResult(
            writer=writer.name,
            kind=writer.hudi.table_type.value if writer.hudi else "JSON",
            path=writer.output.path,
            rows=rows,
            files=size.files,
            bytes=size.bytes,
            batches=len(batches),
            records=sum(batch.records for batch in batches),
            quarantined=sum(batch.quarantined for batch in batches),
            batch_seconds_p50=round(float(np.median([batch.seconds.total for batch in batches])), 3),
            freshness_warm=freshness(arrivals, batches, warm_at and max(warm_at, self._load_began)),
            freshness_all=freshness(arrivals, batches, caught_up_at(batches)),
        )

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._seconds[part] = round(time.monotonic() - began, 3)


def arrivals_by_shard(rows: pa.Table) -> dict[str, Microseconds]:
    """Arrival times of the JSON table's rows."""
    times = pc.cast(rows["_arrival"], pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    shards = rows["_shard_id"].to_numpy()
    return {str(shard): times[shards == shard] for shard in np.unique(shards)}


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    workspace = Workspace(Path(sys.argv[1]))
    document = DemoDocument.of(workspace.document.read_text(encoding="utf-8"))
    s3 = S3Settings.from_environment(os.environ, document.region)
    inspection = Inspector(workspace, document, s3, datetime.fromisoformat(sys.argv[2])).inspect()
    workspace.inspection.write_bytes(inspection.to_json())


if __name__ == "__main__":
    main()
