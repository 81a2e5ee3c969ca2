"""The lake on S3, held against the ledger of the load."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lakestream_loadgen.audit import audit, compare, fold, read_json_lake, read_parquet, read_quarantine
from lakestream_loadgen.audit.report import report_text
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.ledger.reader import read_ledgers

_PLACE = ["shard_id", "sequence_number", "sub_sequence", "data"]
"""Of a record in quarantine."""


@dataclass(frozen=True)
class Lake:
    """Where a LakeStream with a Hudi and a JSON writer keeps its things. S3 is found by the environment."""

    ledger: str
    json: str
    hudi: str
    checkpoint: str

    def require_exactly_once(self, spark: SparkSession, scratch: Path) -> str:
        """Nothing is missing, doubled or altered in either table; returns the audit's words.

        The truth of the JSON files is the ledger, that of Hudi the fold of the JSON files.
        """
        rows = read_json_lake(self.json)
        quarantines = [read_quarantine(f"{self.checkpoint}/{writer}/quarantine") for writer in ("json", "hudi")]
        # No test kills a worker of the load: each ledger has its end, or the load was not stopped as it should be.
        ledgers = read_ledgers(self.ledger)
        verdict = audit(ledgers.entries, rows, quarantines[0], open_ledgers=ledgers.open)
        dump = scratch / "snapshot"
        self.table(spark).select(*EVENT_SCHEMA.names).write.mode("overwrite").parquet(dump.as_uri())
        compared = compare(fold(rows), read_parquet(str(dump)))
        text = report_text(verdict, compared)
        assert verdict.ok, text
        assert compared.ok, text
        assert len(rows) > 0, "the JSON table is empty"
        json, hudi = (Counter(zip(*one.select(_PLACE).to_pydict().values(), strict=True)) for one in quarantines)
        assert json.keys() == hudi.keys(), "the two writers quarantined different records"
        # What test_3_changes.py has had read once more is there twice (docs/backfill.md).
        assert max(hudi.values(), default=1) <= 2, hudi.most_common(3)
        return text

    def table(self, spark: SparkSession) -> DataFrame:
        """The snapshot of the Hudi table as it is now."""
        return spark.read.format("hudi").load(self.hudi)
