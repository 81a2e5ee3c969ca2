"""Tables of orders, written by our sinks, and what is in them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from lakestream import settings
from lakestream.model import Definition
from lakestream.query.hudi_folder import HudiFolder
from lakestream.sinks.contract import BatchRef, Sink
from lakestream.sinks.hudi import HudiSink
from lakestream.sinks.json_files import JsonSink
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream_api import HudiOutput, JsonOutput

COLUMNS = (
    "id string, version bigint, op string, dt string, at timestamp, tags array<string>, part struct<x:int,y:string>"
)
WIDER = (
    "id string, version bigint, note string, op string, dt string, at timestamp, tags array<string>, "
    "part struct<x:int,y:string>, cents decimal(38,18), day date, raw binary"
)
"""One column more in the middle, and some at the end."""

BATCHES = [
    [("a", 5, "u"), ("b", 2, "u"), ("c", 1, "u"), ("f", 1, "u"), ("g", 7, "u")],
    # Late, newest, deleted; a late delete.
    [("a", 1, "u"), ("b", 9, "u"), ("c", 2, "d"), ("g", 3, "d")],
]
MORE = [
    # Late versions, one of what was deleted.
    [("a", 6, "u"), ("b", 4, "u"), ("c", 1, "u"), ("h", 1, "u")],
    [("a", 7, "u")],
]
"""With the wider columns."""

Row = dict[str, Any]


def order(key: str, version: int, op: str, *, wider: bool = False) -> Row:
    row: Row = {
        "id": key,
        "version": version,
        "op": op,
        "dt": f"2026-01-0{ord(key) % 2 + 1}",
        "at": datetime(2026, 1, 31, 12, 0, version, 123456, UTC),
        "tags": ["x", None],
        "part": {"x": version, "y": "ü"},
    }
    if wider:
        row |= {"note": "n", "cents": Decimal("12.5"), "day": date(2026, 1, 31), "raw": b"\0\xff"}
    return row


@dataclass
class Written:
    """A table, and what was written to it."""

    spark: SparkSession
    output: HudiOutput | JsonOutput
    s3: S3Settings = field(default_factory=lambda: S3Settings("eu-west-1"))
    batches: list[list[Row]] = field(default_factory=list)
    instants: list[str] = field(default_factory=list)
    """Of Hudi's commits."""

    @contextmanager
    def opened(self, columns: str) -> Iterator[Sink]:
        """A sink that is prepared, as a driver has it."""
        sink = self._sink(columns)
        try:
            sink.prepare(self.spark.createDataFrame([], columns).schema)
            yield sink
        finally:
            sink.close()

    def write(self, columns: str, *batches: Sequence[tuple[str, int, str]]) -> None:
        with self.opened(columns) as sink:
            for batch in batches:
                rows = [order(*one, wider=columns == WIDER) for one in batch]
                frame = self.spark.createDataFrame(rows, columns).coalesce(1)
                commit = sink.write(BatchRef(len(self.batches), str(uuid.UUID(int=7))), frame, replay=False)
                if isinstance(sink, HudiSink):
                    sink.finish_services()
                self.batches.append(rows)
                self.instants.append(commit.instant or "")

    def rows(self, batches: int | None = None) -> list[Row]:
        """What a query finds after so many batches."""
        written = [row for batch in self.batches[:batches] for row in batch]
        if isinstance(self.output, JsonOutput):
            return written
        newest: dict[str, Row] = {}
        for row in written:
            if row["id"] not in newest or newest[row["id"]]["version"] <= row["version"]:
                newest[row["id"]] = row
        return [row for row in newest.values() if row["op"] != "d"]

    def compacted(self) -> int:
        """How many batches the last compaction has taken in."""
        folder = HudiFolder.look(StoreSettings(LakePath.parse(self.output.path), self.s3))
        last = max((compaction.requested for compaction in folder.timeline.compactions), default="")
        return sum(instant < last for instant in self.instants)

    def _sink(self, columns: str) -> Sink:
        match self.output:
            case HudiOutput():
                definition = Definition(columns, None, self.output.delete_when)
                return HudiSink(self.spark, settings.hudi_settings(self.output, "orders", definition))
            case JsonOutput():
                return JsonSink(settings.json_settings(self.output, self.s3, Definition(columns, None, None)))


def hudi_output(path: str, *, merges: bool, version: int = 6, compact_every: int = 100, **more: Any) -> HudiOutput:
    return HudiOutput.model_validate({
        "path": path,
        "tableType": "MERGE_ON_READ" if merges else "COPY_ON_WRITE",
        "tableVersion": version,
        "recordKey": ["id"],
        "orderingField": "version",
        "partitionBy": ["dt"],
        "deleteWhen": "op = 'd'",
        "index": {"type": "bucket", "buckets": 1},
        "compaction": {"everyCommits": compact_every},
        **more,
    })  # fmt: skip


def as_read(rows: Iterable[Row]) -> list[Row]:
    """Rows in a form in which they can be compared, whoever read them: as JSON, in order, without nulls and without
    columns that are Hudi's or tell whether it is a delete."""
    told: list[Row] = json.loads(json.dumps(list(rows), default=plain))
    own = [
        {
            # Some readers know no names in a struct.
            name: list(value.values()) if isinstance(value, dict) else value
            for name, value in row.items()
            if value is not None and name != "op" and not name.startswith("_")
        }
        for row in told
    ]
    return sorted(own, key=lambda row: json.dumps(row, sort_keys=True))


def plain(value: object) -> Any:
    """What JSON has no form for."""
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case bytes() | bytearray():
            return value.hex()
        case Decimal():
            return str(value.normalize())
    return str(value)
