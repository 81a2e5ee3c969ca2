"""What came of a run: `.demo/result.json`.

The document is versioned: a field may be added within a version; one that is removed or changes its meaning makes a
new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import orjson

VERSION = 2


@dataclass(frozen=True)
class Freshness:
    """Seconds from a record's arrival in Kinesis to its being visible in the lake."""

    p50_seconds: float
    p99_seconds: float
    records: int
    """Records that were looked at."""


@dataclass(frozen=True)
class TableResult:
    """What a writer made."""

    writer: str
    kind: str
    """MERGE_ON_READ, COPY_ON_WRITE or JSON."""
    path: str
    rows: int
    """Rows that a query of the whole table sees now."""
    files: int
    """Data files in the table's folder, those included that newer ones have replaced."""
    bytes: int
    """Their size as stored."""
    batches: int
    records: int
    """Records read from the stream."""
    quarantined: int
    batch_seconds_p50: float
    """Median of what a batch took, waiting for its trigger excluded."""
    freshness_warm: Freshness | None
    """Of the records of the load, those of the first batches left out, in which the JVM compiles and loads classes: of
    what arrived since the load began and the writer was warm. None if it never was."""
    freshness_all: Freshness | None
    """Of all records that arrived since the writer had first reached the tip of the stream, which is during the
    warm-up. None if it never did while records arrived."""


@dataclass(frozen=True)
class CheckResult:
    """One comparison of the audit."""

    name: str
    expected: int
    """Records, or rows, that there should be."""
    found: int
    missing: int
    doubled: int
    altered: int
    unexpected: int
    """What is there and nobody sent."""

    @property
    def passed(self) -> bool:
        return not (self.missing or self.doubled or self.altered or self.unexpected)


@dataclass(frozen=True)
class QueryResult:
    """A query that was shown."""

    name: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Values as text."""
    seconds: float


@dataclass(frozen=True)
class LoadResult:
    """What the users did."""

    users: int
    seconds: float
    sent: int
    """Records that arrived at Kinesis's door, those sent again counted each time."""
    throttled: int
    """Of them, refused for a shard's limit, and sent again."""
    acknowledged: int
    """Records that Kinesis took and said so, by the ledger."""
    failed: int
    """Records given up, by the ledger."""


@dataclass(frozen=True)
class DemoResult:
    """A finished run."""

    started_at: datetime
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]
    """Seconds by phase."""
    inspection_seconds: Mapping[str, float]
    """Of them, seconds by part of the inspection."""
    load: LoadResult
    tables: tuple[TableResult, ...]
    audit: tuple[CheckResult, ...]
    queries: tuple[QueryResult, ...]

    @property
    def passed(self) -> bool:
        """Whether the audit found everything once and unaltered."""
        return bool(self.audit) and all(check.passed for check in self.audit)

    def to_json(self) -> bytes:
        fields = {"version": VERSION, "passed": self.passed, **asdict(self)}
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2) + b"\n"
