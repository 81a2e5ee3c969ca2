"""What a lake holds, and how it differs from the truth."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from lab.stream import Content, Place, Truth
from lakestream.log import BatchFiles, ObstoreLogStore, committed_files, without_readmitted
from lakestream.log.layout import BATCHES, COMMITS, EPOCHS
from lakestream.model import BatchCommit, BatchPlan
from lakestream.sinks.hudi.stats import BATCH, CHECKPOINT
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.verdicts import tiling_faults
from lakestream_loadgen.audit import compare, fold, read_json_lake, read_parquet, read_quarantine
from lakestream_loadgen.content import EVENT_SCHEMA, canonical_text
from lakestream_loadgen.storage import Folder

Entry = TypeVar("Entry", BatchPlan, BatchCommit)

_OWNER = "_lakestream/owner"
_SAMPLES = 5
_PLACE = ("_shard_id", "_sequence_number", "_sub_sequence")


@dataclass(frozen=True)
class Writer:
    """A writer's part of a lake."""

    name: str
    path: str
    checkpoint: str
    """`<spec.checkpoint>/<writer>`."""
    s3: str | None
    """URL of the S3 server, if the lake is on one."""

    @contextmanager
    def environment(self) -> Iterator[None]:
        """For those who find S3 by the environment."""
        with pytest.MonkeyPatch.context() as patch:
            if self.s3 is not None:
                patch.setenv("AWS_ENDPOINT_URL_S3", self.s3)
                patch.setenv("AWS_ACCESS_KEY_ID", "test")
                patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
                patch.setenv("AWS_REGION", "us-east-1")
            yield


def differences(what: str, expected: Mapping[Place, Content], found: Iterable[tuple[Place, Content]]) -> list[str]:
    """What is missing, doubled, altered or came from nowhere: counts, and the first rows of each kind."""
    rows = list(found)
    times = Counter(place for place, _ in rows)
    kinds: dict[str, list[tuple[Place, object]]] = {
        "missing": [(place, content) for place, content in expected.items() if place not in times],
        "doubled": [(place, f"{number} times") for place, number in times.items() if number > 1],
        "altered": [
            (place, (content, "instead of", expected[place]))
            for place, content in rows
            if place in expected and content != _as_seen(expected[place], content)
        ],
        "from nowhere": [(place, content) for place, content in rows if place not in expected],
    }
    faults = []
    for kind, cases in kinds.items():
        if cases:
            faults.append(f"{what}: {len(cases)} of {len(expected)} records {kind}")
            faults += [f"    {place}: {detail}" for place, detail in sorted(cases, key=lambda case: case[0])[:_SAMPLES]]
    return faults


def json_faults(truth: Truth, writer: Writer) -> list[str]:
    """Of the rows in the JSON files; and whether these are the files of the commits, and no others."""
    with writer.environment():
        rows = read_json_lake(writer.path)
        names = set(Folder(writer.path).names()) - {_OWNER}
        listed = {file.path for batch in files_of(writer) for file in batch.files}
    return differences("rows", truth.good, _placed(rows)) + _manifest_faults(names, listed)


def _manifest_faults(names: set[str], listed: set[str]) -> list[str]:
    faults = [f"no commit has the file {name}" for name in sorted(names - listed)]
    return faults + [f"a committed file is gone: {name}" for name in sorted(listed - names)]


def insert_faults(truth: Truth, table: DataFrame, dump: Path) -> list[str]:
    """Of a table without keys: a row per record."""
    times = table.selectExpr(
        *EVENT_SCHEMA.names, *_PLACE, "date_format(_arrival, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\") AS _arrival"
    )
    times.write.parquet(dump.as_uri())
    rows = pa.concat_tables(pa.parquet.read_table(file) for file in sorted(dump.glob("*.parquet")))
    return differences("rows", truth.good, _placed(rows))


def snapshot_faults(truth: Truth, table: DataFrame, dump: Path) -> list[str]:
    """Of a table that is kept by key: it has to be the fold of the events."""
    table.select(*EVENT_SCHEMA.names).write.parquet(dump.as_uri())
    expected = fold(truth.events())
    verdict = compare(expected, read_parquet(str(dump)))
    return [] if verdict.ok else [f"snapshot of {len(expected)} orders: {verdict}"]


def quarantine_faults(truth: Truth, writer: Writer) -> list[str]:
    with writer.environment():
        batches = files_of(writer)
        kept = [file.path for batch in without_readmitted(batches) for file in batch.rejects]
        found = read_quarantine(f"{writer.checkpoint}/quarantine", kept)
        names = set(Folder(f"{writer.checkpoint}/quarantine").names())
        listed = {file.path for batch in batches for file in batch.rejects}
    places = zip(
        found["shard_id"].to_pylist(),
        found["sequence_number"].to_pylist(),
        found["sub_sequence"].to_pylist(),
        strict=True,
    )
    rows = [
        ((shard, int(sequence), sub), Content(data, None))
        for (shard, sequence, sub), data in zip(places, found["data"].to_pylist(), strict=True)
    ]
    return differences("quarantine", truth.unusable, rows) + _manifest_faults(names, listed)


def log_faults(truth: Truth, writer: Writer) -> list[str]:
    """Of plans and commits: the ranges tile the shards, and the numbers add up."""
    with writer.environment():
        plans, commits = plans_of(writer), commits_of(writer)
    faults = tiling_faults(surviving(plans))
    if [plan.batch for plan in plans] != [commit.batch for commit in commits]:
        faults.append("plans and commits are not of the same batches")
    if len(commits) != commits[-1].batch + 1:
        return faults  # the first have been removed
    commits = surviving(commits)
    streamed = [commit for commit in commits if commit.of_span or not commit.is_requested]
    readmitted = sum(commit.records for commit in commits if commit.readmits)
    for name, counted, expected in (
        ("records", sum(commit.records for commit in streamed), truth.records),
        ("kinesis_records", sum(commit.kinesis_records for commit in streamed), truth.kinesis_records),
        ("quarantined", sum(commit.quarantined for commit in commits) - readmitted, len(truth.unusable)),
    ):
        if counted != expected:
            faults.append(f"the commits count {counted} {name}, the stream has {expected}")
    return faults


def timeline_faults(writer: Writer, batches: Iterable[int], spark: SparkSession) -> list[str]:
    """A batch that went into the table twice: upserts would hide it."""
    hudi = spark._jvm.org.apache.hudi
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    client = hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(uri_of(writer.path)).build()
    archived = client.getArchivedTimeline()
    archived.loadCompletedInstantDetailsInMemory()
    marks: Counter[int] = Counter()
    for timeline in (archived, client.getActiveTimeline()):
        for instant in timeline.getCommitsTimeline().filterCompletedInstants().getInstants():
            metadata = timeline.readCommitMetadata(instant)
            if metadata.getMetadata(CHECKPOINT) is not None:
                marks[int(metadata.getMetadata(BATCH))] += 1
    faults = [f"batch {batch} was committed to the table {times} times" for batch, times in marks.items() if times > 1]
    return faults + [f"batch {batch} is not in the table's timeline" for batch in batches if batch not in marks]


def surviving(entries: Sequence[Entry]) -> list[Entry]:
    """Plans or commits without those that a restore has undone, and without the restore."""
    kept: list[Entry] = []
    for entry in entries:
        if entry.restore is None:
            kept.append(entry)
        else:
            kept = [one for one in kept if one.batch <= entry.restore.batch]
    return kept


def commits_of(writer: Writer) -> list[BatchCommit]:
    folder = Folder(writer.checkpoint)
    keys = [name for name in folder.names() if name.startswith(COMMITS)]
    return [BatchCommit.from_json(gzip.decompress(folder.read(key))) for key in keys]


def files_of(writer: Writer) -> list[BatchFiles]:
    s3 = S3Settings("us-east-1", writer.s3)
    with writer.environment():
        return list(committed_files(ObstoreLogStore.at(StoreSettings(LakePath.parse(writer.checkpoint), s3))))


def plans_of(writer: Writer) -> list[BatchPlan]:
    folder = Folder(writer.checkpoint)
    keys = [name for name in folder.names() if name.startswith(BATCHES)]
    return [BatchPlan.from_json(gzip.decompress(folder.read(key))) for key in keys]


def epochs_of(writer: Writer) -> list[str]:
    """Names of the objects, in order."""
    names = Folder(writer.checkpoint).names()
    return [name.removeprefix(f"{EPOCHS}/") for name in names if name.startswith(f"{EPOCHS}/")]


def log_listing(writer: Writer) -> str:
    """Plans, commits and epochs, for a person."""
    with writer.environment():
        plans, commits = plans_of(writer), {commit.batch: commit for commit in commits_of(writer)}
        lines = [f"--- the log; epochs: {', '.join(epochs_of(writer))}"]
    for plan in plans[-20:]:
        commit = commits.get(plan.batch)
        by = f"committed by epoch {commit.epoch}: {commit.records} records" if commit else "not committed"
        lines.append(f"batch {plan.batch}, planned by epoch {plan.epoch}, {by}")
    return "\n".join(lines)


def uri_of(path: str) -> str:
    return path if "://" in path else f"file://{path}"


def _placed(rows: pa.Table) -> Iterator[tuple[Place, Content]]:
    columns = (rows[name].to_pylist() for name in (*_PLACE, "_arrival"))
    for text, shard, sequence, sub, arrival in zip(canonical_text(rows).to_pylist(), *columns, strict=True):
        moment = datetime.fromisoformat(arrival) if arrival is not None else None
        yield (shard, int(sequence), sub), Content(text.encode(), moment)


def _as_seen(expected: Content, found: Content) -> Content:
    return Content(expected.data, None) if found.arrival is None else expected
