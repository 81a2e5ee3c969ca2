"""Reads a lake as others would: stock Spark and Hudi for tables, gzip and JSON for files, PyArrow for quarantine.

A lake on S3 is copied to a folder first.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch
from urllib.parse import unquote

import pyarrow.parquet

from chaos.audit.verdict import Reject
from chaos.events import PARTITION, Digits, Row, bare, epoch_micros, micros
from chaos.ledger import Loss, Told, Where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_COLUMNS = (
    "id",
    "site",
    "day",
    "version",
    "op",
    "cast(amount AS string) AS amount",
    "unix_micros(at) AS at",
    "note",
    "place",
    "tags",
)
_METADATA = (
    "_rescued",
    "_shard_id",
    "_sequence_number",
    "_sub_sequence",
    "_partition_key",
    "unix_micros(_arrival) AS _arrival",
)


class Lake:
    """Reads Hudi tables with a Spark that knows nothing of LakeStream. Starts with the first table."""

    def __init__(self, java_home: Path, jars: Path, scratch: Path) -> None:
        """Make a reader.

        Args:
            java_home: of a Java 17.
            jars: a folder with Spark's own jars and Hudi's bundle.
            scratch: a folder for Spark.
        """
        self._java_home = java_home
        self._jars = jars
        self._scratch = scratch
        self._spark: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spark is not None:
            self._spark.stop()

    def read_table(self, table: Path) -> list[tuple[Where, Row]]:
        """The rows of a snapshot query."""
        spark = self._spark = self._spark or self._start()
        rows = spark.read.format("hudi").load(table.as_uri())
        extra = ["extra"] if "extra" in rows.columns else []
        return [_placed(row.asDict(recursive=True)) for row in rows.selectExpr(*_COLUMNS, *_METADATA, *extra).collect()]

    def _start(self) -> SparkSession:
        from pyspark.sql import SparkSession

        classes = os.pathsep.join(str(jar) for jar in sorted(self._jars.glob("*.jar")))
        conf = {
            "spark.driver.extraClassPath": classes,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Djol.skipDynamicAttach=true",
            "spark.local.dir": str(self._scratch),
            "spark.sql.warehouse.dir": str(self._scratch / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        }
        builder = SparkSession.builder.master("local[2]").appName("audit")
        for key, value in conf.items():
            builder = builder.config(key, value)
        # For this JVM alone: drivers start with an archive of classes, which is made for the Java that they find.
        with patch.dict(os.environ, JAVA_HOME=str(self._java_home)):
            spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        return spark


def services_of(table: Path, *, is_merge_on_read: bool) -> dict[str, int]:
    """How often each service of a Hudi table has done something, as far as its timeline is not archived."""
    done = Counter(file.suffix for file in (table / ".hoodie").rglob("2*") if file.stem.replace("_", "").isdigit())
    compactions = done[".commit"] if is_merge_on_read else 0
    return {"compactions": compactions, "clusterings": done[".replacecommit"], "cleanings": done[".clean"]}


def read_json(folder: Path) -> list[tuple[Where, Row]]:
    """The lines of all files that readers of the folder take, with the partition from the folders' names.

    Raises:
        ValueError: one that readers fail at; the message names it.
    """
    found = []
    for file in _visible(folder):
        partition = dict(_partition(file.relative_to(folder).parts[:-1]))
        try:
            *lines, rest = gzip.decompress(file.read_bytes()).split(b"\n")
            if rest:
                raise ValueError("its last line has no end")
            for line in lines:
                row = json.loads(line, parse_float=Decimal)
                _require_numbers(row)
                row |= {name: micros(row[name]) for name in ("at", "_arrival") if row.get(name) is not None}
                found.append(_placed({**row, **partition}))
        except (EOFError, OSError, ValueError) as error:
            raise ValueError(f"readers take {file} as well: {error}") from error
    return found


def _visible(folder: Path) -> list[Path]:
    """The files that Hadoop, Spark and Athena list: all but those below a name with an underscore or a dot first."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return [file for file in files if not any(part[0] in "._" for part in file.relative_to(folder).parts)]


def _require_numbers(row: dict[str, Any]) -> None:
    if not isinstance(row.get("amount"), Decimal | int | None) or type(row["version"]) is not int:
        raise ValueError(f"{row.get('amount')!r} or {row['version']!r} is another kind of value")


def read_quarantine(folder: Path, taken: Collection[str] = ()) -> list[Reject]:
    """Each record in quarantine, but for files that were taken out of it."""
    found: list[Reject] = []
    for file in _rejects(folder, taken).values():
        with file.open("rb") as content:
            rows = pyarrow.parquet.read_table(content).to_pylist()
        found += map(_reject, rows)
    return found


def _reject(row: dict[str, Any]) -> Reject:
    where = (row["shard_id"], int(row["sequence_number"]), row["sub_sequence"])
    return Reject(
        where, row["data"], {"_arrival": epoch_micros(row["arrival"]), "_partition_key": row["partition_key"]}
    )


def lines_of(folder: Path) -> dict[str, int]:
    """Of each file that `read_json` takes, how many lines it has."""
    files = {str(file.relative_to(folder)): file for file in _visible(folder)}
    return {name: gzip.decompress(file.read_bytes()).count(b"\n") for name, file in files.items()}


def rows_of(folder: Path, taken: Collection[str] = ()) -> dict[str, int]:
    """Of each file that `read_quarantine` takes, how many records it has."""
    return {name: pyarrow.parquet.read_metadata(file).num_rows for name, file in _rejects(folder, taken).items()}


def _rejects(folder: Path, taken: Collection[str]) -> dict[str, Path]:
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.parquet"))}
    return {name: file for name, file in files.items() if name not in taken}


@dataclass(frozen=True)
class Named:
    """The files that a log says batches have written, with their rows."""

    files: dict[str, int]
    """Of the table."""
    rejects: dict[str, int]
    """Of the quarantine, but for those that were taken."""
    taken: frozenset[str]
    """Of the quarantine, read once more by a batch: what was not usable still is in a file of that one."""


@dataclass(frozen=True)
class _Batch:
    files: list[Any]
    rejects: list[Any]
    readmits: list[str]
    """Files of the quarantine that it read."""
    back_to: int | None
    """The batch behind which it undid all, to have the stream read again."""


def read_named(log: Path) -> Named:
    """What a log says of files: in commits and, of those that have expired, in manifests."""
    batches: dict[int, _Batch] = {}
    for file in sorted(log.glob("manifests/*.json.gz")):
        manifest = json.loads(gzip.decompress(file.read_bytes()))
        readmits, back_to = manifest.get("readmits", {}), manifest.get("backTo", {})
        for number, _, files, rejects in manifest["batches"]:
            batches[number] = _Batch(files, rejects, readmits.get(str(number), []), back_to.get(str(number)))
    for file in sorted(log.glob("commits/*.json.gz")):
        commit = json.loads(gzip.decompress(file.read_bytes()))
        files, restore = (commit["sink"] or {}).get("files", []), commit.get("restore")
        _, _, back, rereads = restore or (0, "", 0, False)
        readmits = commit.get("readmits", [])
        batches[commit["batch"]] = _Batch(files, commit["rejects"], readmits, back if rereads else None)
    taken: dict[str, int] = {}
    for number, batch in sorted(batches.items()):
        if batch.back_to is not None:
            taken = {path: by for path, by in taken.items() if by <= batch.back_to}
        taken |= dict.fromkeys(batch.readmits, number)
    files = {row[0]: row[1] for batch in batches.values() for row in batch.files}
    rejects = {row[0]: row[1] for batch in batches.values() for row in batch.rejects}
    return Named(files, {path: count for path, count in rejects.items() if path not in taken}, frozenset(taken))


def read_told(commits: Path) -> Told:
    """What the commits of a log tell of losses."""
    documents = [json.loads(gzip.decompress(file.read_bytes())) for file in sorted(commits.glob("*.json.gz"))]
    rows = [row for document in documents for row in document["losses"]]
    cursors = [row for document in documents for row in document["cursors"]]
    losses = (Loss(shard, *map(datetime.fromisoformat, times)) for shard, _, _, *times in rows)
    return Told(tuple(losses), frozenset(row[0] for row in [*rows, *cursors]))


def _partition(folders: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    for folder in folders:
        name, _, value = folder.partition("=")
        yield name, None if value == NULL_PARTITION else unquote(value)


def _placed(row: dict[str, Any]) -> tuple[Where, Row]:
    """`extra` is in its column since there is one, and was rescued before."""
    rescued = json.loads(row.get("_rescued") or "{}", parse_float=Digits)
    if PARTITION in row and row[PARTITION] == NULL_PARTITION:
        row[PARTITION] = None
    unknown = {name: value for name, value in rescued.items() if name != "extra"}
    extra = row.get("extra") if row.get("extra") is not None else rescued.get("extra")
    where = (row["_shard_id"], int(row["_sequence_number"]), row["_sub_sequence"])
    nested = {name: bare(row.get(name)) for name in ("place", "tags")}
    return where, {**row, **nested, "extra": extra, **({"rescued": unknown} if unknown else {})}
