"""Puts the parts of one writer together and runs it: the only module that knows them all."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from lakestream import places, settings
from lakestream.anew import has_taken, owner_and_epoch, pause, why_begun_anew, would_end_with
from lakestream.by_hand import ByHand, Tended
from lakestream.catalogs import Cataloged, keep_catalog
from lakestream.control import (
    ConfigMaps,
    DriverControl,
    Job,
    JsonLinesProgress,
    NoControl,
    Pod,
    PodControl,
    ProgressPublisher,
    ProgressReporter,
    PrometheusProgress,
    serve_metrics,
)
from lakestream.endings import end_all, end_at_once, failures_outlasted
from lakestream.engine import Engine, Until
from lakestream.errors import DataLossError, KinesisRejectedError, LakeStreamError, RangeError, StreamRecreatedError
from lakestream.exits import exit_of
from lakestream.kinesis import HttpKinesisClient, KinesisSettings, StreamPlanner, read_ranges
from lakestream.kinesis.consumer import require_consumer
from lakestream.kinesis.lineage import trim_at
from lakestream.log import CheckpointLog, Fence, FenceSettings, FenceWatch, Identity, ObstoreLogStore
from lakestream.model import Definition, Trim
from lakestream.observer import RunObserver
from lakestream.output import SparkOutput
from lakestream.replay import NoRestores, carry_out
from lakestream.restoring import Restorer
from lakestream.sinks.contract import Sink
from lakestream.sinks.hudi import HudiSettings, HudiSink, RestorableTable
from lakestream.sinks.json_files import JsonSink
from lakestream.sinks.leftovers import Leftovers
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.sinks.quarantine import Quarantine
from lakestream.spark.executors import SparkExecutorPool
from lakestream.spark.failures import spark_errors_in_our_words
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.session import build_session, executors_of, instances_of, require_submitted, stop_session
from lakestream.spark.tasktime import TaskTime
from lakestream.spark.uploads import abort_uploads
from lakestream.statuses import Exit
from lakestream.stopping import StopSignal, ended_by_signals, stop_on_signals
from lakestream.storage import LakePath, S3Settings, StorageUnavailableError, StoreSettings
from lakestream.takeover import await_predecessors
from lakestream_api import HudiOutput, LakeStream, Writer, advice
from lakestream_api.names import WriterNames
from lakestream_api.report import Failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a writer is run, beside what its document says."""

    cores: int | None
    """Task slots of local Spark; None: spark-submit has set the master."""
    until_caught_up: bool
    progress_file: Path | None
    """Gets a line of JSON per batch."""
    metrics_port: int | None
    """Serves Prometheus metrics; None: not at all."""

    @property
    def until(self) -> Until:
        """When the run ends by itself."""
        return Until.CAUGHT_UP if self.until_caught_up else Until.STOPPED


def run(document: LakeStream, writer_name: str, run_settings: RunSettings) -> int:
    """Run one writer until it is stopped or, if so asked, has caught up; returns the number of batches committed.

    What is cheap to check is checked before Spark is started, and the log is taken over before that
    too: a driver that was replaced has the time of Spark's start to stop. What needs no log is checked before it is
    taken over: one that cannot run replaces none that does.

    Raises:
        InvalidDocumentError: there is no such writer.
        LakeStreamError: any other, as told there.
    """
    writer = document.writer(writer_name)
    if run_settings.cores is None:
        require_submitted()
    for sentence in advice(document):
        logger.warning("%s", sentence)
    stop = StopSignal()
    with ExitStack() as stack:
        stack.enter_context(stop_on_signals(stop))
        control = _control(stack, WriterNames(document.metadata.name, writer.name), stop)
        with _told(control), failures_outlasted(stop):
            pause(stop)
            # A driver may be asked to stop as soon as it has been made.
            done = 0 if stop.is_set() else _ingest(document, writer, run_settings, control, stop)
        logger.info("ended after %d batches", done)
        return done


def _ingest(
    document: LakeStream, writer: Writer, run_settings: RunSettings, control: DriverControl, stop: StopSignal
) -> int:
    source = settings.kinesis_settings(document.spec.source.kinesis, writer)
    s3 = S3Settings.from_environment(os.environ, source.region)
    with ExitStack() as stack:
        publishers = _publishers(run_settings, control)
        client = HttpKinesisClient(source)
        stack.callback(client.close)
        place = places.checkpoint_place(document, writer, s3)
        identity = _identity(client, writer)
        log = stack.enter_context(_taken_over(place, identity, control, stop))
        claim = _claimed(document, writer, log, place)
        stack.enter_context(_watch(place, log, stop))
        stack.enter_context(_told_if_recreated(client, identity))
        stack.enter_context(spark_errors_in_our_words())
        session = settings.session_settings(document, writer, s3, run_settings.cores, executors=control.executors)
        spark = build_session(session)
        stack.callback(stop_session, spark)
        job = _job(document, writer, run_settings)
        cut = settings.planner_settings(document, writer)
        planner = stack.enter_context(StreamPlanner(client, cut, slots=partial(_slots, spark, control, job)))

        @cache
        def running() -> None:
            logger.info("reading the stream %s into %s", source.stream, writer.output.path)
            control.running(SparkExecutorPool(spark), instances_of(spark), client)

        parts = _Parts(
            document=document,
            writer=writer,
            source=source,
            s3=s3,
            client=client,
            log=log,
            claim=claim,
            quarantine=Quarantine(place / places.QUARANTINE),
            spark=spark,
            planner=planner,
            job=job,
            publishers=[*publishers, *_served(stack, run_settings)],
            control=control,
            stop=stop,
            running=running,
        )
        if not await_predecessors(log, stop):
            return 0
        abort_uploads(spark, (LakePath.parse(writer.output.path), (place / places.QUARANTINE).path))
        return parts.run(run_settings.until)


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What the batches of all definitions share."""

    document: LakeStream
    writer: Writer
    source: KinesisSettings
    s3: S3Settings
    client: HttpKinesisClient
    log: CheckpointLog
    claim: TableClaim
    quarantine: Quarantine
    spark: SparkSession
    planner: StreamPlanner
    job: Job
    publishers: Sequence[ProgressPublisher]
    control: DriverControl
    stop: StopSignal
    running: Callable[[], object]
    """To be told whenever a sink is ready."""

    def run(self, until: Until) -> int:
        """All batches that there are to be; returns how many were committed."""
        present = settings.definition(self.document, self.writer)
        return carry_out(self.log.pending_plans(), present, self.engine, until, self.restores)

    @contextmanager
    def engine(self, definition: Definition) -> Iterator[Engine[DataFrame]]:
        """The engine of one definition, with a sink that is ready for it."""
        with ExitStack() as stack:
            stack.enter_context(spark_errors_in_our_words())
            sink = self.sink(definition)
            by_hand = None
            if isinstance(sink, HudiSink) and isinstance(self.restores, Restorer):
                by_hand = ByHand(self.log.services, Tended(sink, self.log, self.restores))
            if by_hand is not None:
                stack.callback(by_hand.settle)
            stack.callback(sink.close)
            pipeline = Pipeline.of(
                *(self.spark, definition.schema, definition.transform, sink.refusal, definition.delete_when),
                filters=definition.filters,
                record_format=definition.record_format,
                registry=settings.registry_settings(self.document.spec.source.kinesis),
            )
            # Spark would plan anew behind each stage, and give what is kept in memory a job of its own: 15 ms a batch.
            shuffles = isinstance(sink, HudiSink) or not pipeline.is_by_row
            self.spark.conf.set("spark.sql.adaptive.enabled", str(shuffles).lower())
            sink.prepare(pipeline.output)
            if isinstance(sink, HudiSink):
                self.log.require_known(sink.newest_batch(str(self.log.checkpoint)))
            keeper = keep_catalog(self.writer.output, sink, self.spark, self.s3)
            if keeper is not None:
                stack.callback(keeper.close)
            self.running()
            times = TaskTime(self.spark)
            table = Cataloged(sink, keeper)
            reporter = ProgressReporter(
                self.job,
                self.publishers,
                core_seconds=times.written,
                executors=lambda: executors_of(self.spark),
                kinesis_now=self.client.now,
                table=table,
                quarantine=self.quarantine,
            )
            yield Engine(
                settings=settings.engine_settings(self.document, definition),
                log=self.log,
                planner=self.planner,
                fetcher=SparkFetcher(self.spark, self.source, pipeline, self.quarantine.store, read_ranges),
                output=SparkOutput(sink, self.quarantine, self.claim, pipeline.is_by_row, lambda: self.log.is_asked),
                observer=RunObserver(reporter, self.control, keeper, by_hand, times, table),
                stop=self.stop,
            )

    @cached_property
    def restores(self) -> Restorer | NoRestores:
        """Who takes the table back."""
        if self.writer.hudi is None:
            return NoRestores()
        present = settings.definition(self.document, self.writer)
        table = RestorableTable(self.spark, self._hudi(self.writer.hudi, present))

        def trim(known: Trim | None) -> Trim:
            return trim_at(known, self.client.now(), self.client.describe_stream_summary().retention)

        return Restorer(self.log, table, present, trim, self.stop)

    def sink(self, definition: Definition) -> Sink:
        if self.writer.json_files is not None:
            made = settings.json_settings(self.writer.json_files, self.s3, definition)
            return JsonSink(made, Leftovers(made.store, str(self.log.checkpoint), self.log.newest_files))
        assert self.writer.hudi is not None  # the model: a writer has one output
        return HudiSink(self.spark, self._hudi(self.writer.hudi, definition))

    def _hudi(self, output: HudiOutput, definition: Definition) -> HudiSettings:
        return settings.hudi_settings(output, f"{self.document.metadata.name}_{self.writer.name}", definition)


def _control(stack: ExitStack, names: WriterNames, stop: StopSignal) -> DriverControl:
    pod = Pod.from_environment(os.environ)
    if pod is None:
        return NoControl()
    maps = ConfigMaps.in_cluster(os.environ, pod.namespace)
    stack.callback(maps.close)
    why = why_begun_anew()
    awaits = Failure.of(would_end_with(), why) if why else None
    return stack.enter_context(PodControl(pod, names, maps, stop, awaits=awaits))


@contextmanager
def _told(control: DriverControl) -> Iterator[None]:
    """Say how it ended, once nothing is written any more."""
    try:
        yield
    except LakeStreamError as error:
        control.failed(exit_of(error), str(error))
        raise
    except Exception as error:
        control.failed(Exit.FAILED, f"a bug: {type(error).__name__}: {error}")
        raise
    control.ended()


@contextmanager
def _taken_over(
    place: StoreSettings, identity: Identity, control: DriverControl, stop: StopSignal
) -> Iterator[CheckpointLog]:
    with ended_by_signals():  # for nothing is in hand yet, and a storage that is away holds the main thread up
        owner, had = owner_and_epoch()
        log = CheckpointLog.open(ObstoreLogStore.at(place), identity, owner=owner, had=had)
    has_taken(log.epoch)
    try:
        logger.info("epoch %d of checkpoint %s at %s", log.epoch, log.checkpoint, place.path)
        control.took_over(log.epoch)
        if why_begun_anew():
            control.forget_executors()
        yield log
    except StorageUnavailableError as error:
        end_all(stop, error)
        raise
    finally:
        log.close(through=_hurried(place))


def _identity(client: HttpKinesisClient, writer: Writer) -> Identity:
    stream = client.describe_stream_summary()
    if writer.consumer_arn is not None:
        # On a cluster the document is of this writer alone, so that its number is not the one that users know.
        field = f"spec.writers: consumerArn of {writer.name!r}"
        require_consumer(writer.consumer_arn, stream.arn, client.describe_consumer, field)
    return Identity(stream.arn, stream.created_at, settings.immutable_settings(writer.output))


@contextmanager
def _told_if_recreated(client: HttpKinesisClient, identity: Identity) -> Iterator[None]:
    """Of what fails because the positions are of a stream that is no more, tell the cause."""
    try:
        yield
    except (KinesisRejectedError, RangeError, DataLossError) as error:
        stream = client.describe_stream_summary()
        if stream.created_at != identity.stream_created_at:
            raise StreamRecreatedError.of(stream.arn, identity.stream_created_at, stream.created_at) from error
        raise


def _claimed(document: LakeStream, writer: Writer, log: CheckpointLog, place: StoreSettings) -> TableClaim:
    owner = Owner(log.checkpoint, str(place.path), document.metadata.full_name, writer.name)
    claim = TableClaim(
        places.table_place(writer, place.s3),
        places.owner_place(writer, place.s3),
        owner,
        places.table_proofs(writer),
    )
    claim.take(wrote=log.last_commit() is not None)
    return claim


def _watch(place: StoreSettings, log: CheckpointLog, stop: StopSignal) -> FenceWatch:
    return FenceWatch(Fence(_hurried(place), log.epoch, log.owner), partial(end_at_once, stop), FenceSettings())


def _hurried(place: StoreSettings) -> ObstoreLogStore:
    """The log by a store that gives up soon: its own tries a request for minutes."""
    return ObstoreLogStore.at(replace(place, patience=FenceSettings().interval))


def _job(document: LakeStream, writer: Writer, run_settings: RunSettings) -> Job:
    return Job(
        stream=document.metadata.name,
        writer=writer.name,
        trigger_interval=document.spec.trigger.interval,
        cores=run_settings.cores or document.spec.resources.executor.cores,
    )


def _publishers(run_settings: RunSettings, control: DriverControl) -> list[ProgressPublisher]:
    """Those that take nothing away from a predecessor."""
    if run_settings.progress_file is None:
        return [control]
    return [control, JsonLinesProgress(run_settings.progress_file)]


def _served(stack: ExitStack, run_settings: RunSettings) -> list[ProgressPublisher]:
    """Those whose port a predecessor may have until it ends."""
    if run_settings.metrics_port is None:
        return []
    registry = CollectorRegistry()
    # In a pod Prometheus comes from outside; on a laptop nobody does.
    stack.enter_context(serve_metrics(registry, run_settings.metrics_port, loopback=run_settings.cores is not None))
    return [PrometheusProgress(registry)]


def _slots(spark: SparkSession, control: DriverControl, job: Job) -> int:
    """Tasks that can run at once: of the executors that are wanted, for those that are missing are about to come."""
    if control.executors is not None:
        return control.executors * job.cores
    slots: int = spark.sparkContext.defaultParallelism
    return slots
