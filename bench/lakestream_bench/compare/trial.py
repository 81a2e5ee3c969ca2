"""One arm, written by the driver's own engine from recorded plans, and looked at on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import yaml

from lakestream import settings
from lakestream.engine import Engine, EngineSettings, Until
from lakestream.log import CheckpointLog, Identity, ObstoreLogStore
from lakestream.model import BatchCommit, BatchPlan, ShardStats
from lakestream.output import SparkOutput
from lakestream.places import QUARANTINE, checkpoint_place, table_place
from lakestream.sinks.contract import Sink
from lakestream.sinks.hudi import HudiSink
from lakestream.sinks.json_files import JsonSink
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.sinks.quarantine import Quarantine
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import Pipeline
from lakestream.stopping import StopSignal
from lakestream.storage import S3Settings
from lakestream_api import LakeStream, load_lakestream
from lakestream_bench.compare import defaults
from lakestream_bench.compare.arms import PARTITION, Arm, Writer
from lakestream_bench.compare.beside import Reader, judge
from lakestream_bench.compare.defaults import DefaultsSink
from lakestream_bench.compare.engines import TableAt
from lakestream_bench.compare.history import STREAM, History, RecordedPlanner
from lakestream_bench.compare.looking import Looker, Table
from lakestream_bench.compare.results import BatchFigures, Look, Trial
from lakestream_bench.compare.scenarios import Scenario
from lakestream_bench.compare.tables import Moment
from lakestream_bench.compare.usage import SparkCpu, change, is_data, listing, size
from lakestream_loadgen.events import EVENT_DDL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRANSFORM = f"SELECT *, date_format(created_at, 'yyyy-MM-dd') AS {PARTITION} FROM events"


def document(arm: Arm, table: str, checkpoint: str, region: str) -> LakeStream:
    """The LakeStream of an arm; of Hudi's defaults that of copy-on-write, whose source and transform it shares."""
    return load_lakestream(
        yaml.safe_dump(
            {
                "apiVersion": "lakestream.dev/v1alpha1",
                "kind": "LakeStream",
                "metadata": {"name": "compare"},
                "spec": {
                    "source": {"kinesis": {"stream": STREAM, "region": region}},
                    "schema": EVENT_DDL,
                    "transform": _TRANSFORM,
                    "writers": [{"name": arm.name, **arm.output(table)}],
                    "checkpoint": checkpoint,
                },
            }
        )
    )


@dataclass(frozen=True)
class Place:
    """Where an arm is written."""

    table: str
    """Folder, or `s3a://…`."""
    checkpoint: str
    s3: S3Settings


class Ingest:
    """The parts of one writer, without what tells others about it."""

    def __init__(self, spark: SparkSession, arm: Arm, place: Place, history: History) -> None:
        self._spark = spark
        self._history = history
        self.document = document(arm, place.table, place.checkpoint, history.source.region)
        writer = self.document.writer(arm.name)
        self._definition = settings.definition(self.document, writer)
        checkpoint = checkpoint_place(self.document, writer, place.s3)
        self.sink: Sink
        match arm.writer:
            case Writer.JSON:
                assert writer.json_files is not None
                self.sink = JsonSink(settings.json_settings(writer.json_files, place.s3, self._definition))
            case Writer.HUDI:
                assert writer.hudi is not None
                self.sink = HudiSink(spark, settings.hudi_settings(writer.hudi, "compare", self._definition))
            case Writer.DEFAULTS:
                self.sink = DefaultsSink(spark, place.table)
        identity = Identity(STREAM, datetime(2026, 1, 1, tzinfo=UTC), settings.immutable_settings(writer.output))
        self._log = CheckpointLog.open(ObstoreLogStore.at(checkpoint), identity)
        owner = Owner(self._log.checkpoint, str(checkpoint.path), "compare", writer.name)
        # Beside the log: Hudi's DataSource takes a folder with anything of Hudi's in it for a table.
        self._claim = TableClaim(table_place(writer, place.s3), checkpoint / "claim", owner)
        self._claim.take(wrote=False)
        self._quarantine = Quarantine(checkpoint / QUARANTINE)
        self._pipeline = Pipeline.of(spark, EVENT_DDL, _TRANSFORM, self.sink.refusal)
        self.sink.prepare(self._pipeline.output)

    def run(self, plans: Sequence[BatchPlan], committed: Callable[[BatchCommit], None]) -> None:
        """Carry out plans as a driver does that has a backlog: one is fetched while the one before is written."""
        Engine(
            settings=EngineSettings(timedelta(0), self._definition),
            log=self._log,
            planner=RecordedPlanner(plans),
            fetcher=SparkFetcher(self._spark, self._history.source, self._pipeline, self._quarantine.store),
            output=SparkOutput(self.sink, self._quarantine, self._claim),
            observer=_Observer(committed),
            stop=StopSignal(),
        ).run(Until.CAUGHT_UP)

    def settle(self) -> None:
        """Wait for compaction and cleaning."""
        if isinstance(self.sink, HudiSink):
            self.sink.finish_services()

    def close(self) -> None:
        self.sink.close()
        self._log.close()


@dataclass(frozen=True)
class _Observer:
    """The engine's observer."""

    on_commit: Callable[[BatchCommit], None]

    def committed(self, commit: BatchCommit, arrivals: tuple[datetime, ...]) -> None:
        self.on_commit(commit)

    def fetching(self, batch: int) -> None:
        """Nobody follows a batch on its way."""

    def fetched(self, plan: BatchPlan, shards: Sequence[ShardStats]) -> None:
        """As before."""

    def between_batches(self) -> None:
        """Nobody drains or scales this one."""

    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None:
        """There is always a plan, until there is none."""


@dataclass
class _Watch:
    """Takes the figures of each batch when it has been committed."""

    folder: Path
    cpu: SparkCpu
    batches: list[BatchFigures] = field(default_factory=list)
    instants: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before = listing(self.folder)
        self.resume()

    def resume(self) -> None:
        """Time and CPU count from here: nothing ran meanwhile that belongs to a batch."""
        self._used, self._since = self.cpu.seconds(), time.perf_counter()

    def committed(self, commit: BatchCommit) -> None:
        seconds, used = time.perf_counter() - self._since, self.cpu.seconds() - self._used
        self.instants.append(commit.sink.instant if commit.sink else None)
        self.batches.append(
            BatchFigures(
                records=commit.records,
                bytes=commit.bytes,
                seconds=seconds,
                stages=dict(commit.seconds),
                sink=dict(commit.sink.seconds) if commit.sink else {},
                cpu=0.0,
                objects_written=0,
                bytes_written=0,
                objects_deleted=0,
                files=0,
                data_files=0,
                bytes_at_rest=0,
            )
        )
        self.count(used)
        self.resume()

    def count(self, cpu: float) -> None:
        """Count this CPU, and what the folder has become since it was last looked at, with the last batch."""
        after = listing(self.folder)
        found = change(self._before, after)
        last = self.batches[-1]
        self.batches[-1] = replace(
            last,
            cpu=last.cpu + cpu,
            objects_written=last.objects_written + found.objects_written,
            bytes_written=last.bytes_written + found.bytes_written,
            objects_deleted=last.objects_deleted + found.objects_deleted,
            files=len(after),
            data_files=sum(is_data(name) for name in after),
            bytes_at_rest=size(after),
        )
        self._before = after


def run_trial(
    spark: SparkSession, scenario: Scenario, arm: Arm, repetition: int, history: History, looker: Looker, place: Path
) -> Trial:
    """Write an arm and look at it as the scenario says.

    What compaction and cleaning go on to use and write before a look is counted with the batch before it.

    Raises:
        WrongAnswerError: an answer was not right.
    """
    folder = place / "table"
    folder.mkdir(parents=True)
    with _ingest(spark, arm, Place(str(folder), str(place / "checkpoint"), S3Settings("us-east-1")), history) as ingest:
        watch = _Watch(folder, SparkCpu(spark))
        looks: list[Look] = []
        log = place / "checkpoint" / arm.name
        as_it_is = TableAt(arm, folder, log, Moment(history.arrived[0], None, None, 0))
        reader = Reader(spark, history.truth, as_it_is, scenario.batches)
        done = 0
        looked_at = scenario.looks(compacts=arm.merges_on_read)
        for upto in looked_at:
            with reader.asking(lambda: len(watch.batches)) if scenario.has_readers and done else nullcontext():
                ingest.run(history.plans[done:upto], watch.committed)
            done = upto
            aside = watch.cpu.seconds()
            ingest.settle()
            watch.count(watch.cpu.seconds() - aside)
            # A young table has little past.
            has_past = bool(looks) or len(looked_at) == 1
            looks.append(looker.look(Table(arm, folder, log, tuple(watch.instants)), upto, asks_back=has_past))
            watch.resume()
        told = orjson.dumps(defaults.OPTIONS).decode() if arm.writer is Writer.DEFAULTS else None
        return Trial(
            scenario=scenario.name,
            arm=arm.name,
            repetition=repetition,
            document=told or yaml.safe_dump(arm.output("…"), allow_unicode=True),
            batches=tuple(watch.batches),
            looks=tuple(looks),
            beside=judge(reader.given, history.truth),
        )


@contextmanager
def _ingest(spark: SparkSession, arm: Arm, place: Place, history: History) -> Iterator[Ingest]:
    ingest = Ingest(spark, arm, place, history)
    try:
        yield ingest
    finally:
        ingest.close()
