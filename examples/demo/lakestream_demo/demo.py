"""The run: start everything, watch it, end the load, drain, stop, inspect."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from lakestream.control import read_progress
from lakestream.errors import LakeStreamError
from lakestream.spark.java import java_home, major_version
from lakestream_api import format_duration
from lakestream_demo import commands
from lakestream_demo.document import ORDERS, DemoDocument, make_document
from lakestream_demo.errors import DeadlineError, DemoError
from lakestream_demo.history import History
from lakestream_demo.inspected import Inspection
from lakestream_demo.interrupt import Interrupt
from lakestream_demo.ledger import ledger_seen
from lakestream_demo.loopback import HOST, create_bucket, free_port, get
from lakestream_demo.observed import Observed
from lakestream_demo.observer import Observer
from lakestream_demo.page import page
from lakestream_demo.processes import Child, Command, Supervisor
from lakestream_demo.result import DemoResult, LoadResult
from lakestream_demo.screen import Screen
from lakestream_demo.settings import FIRST_ORDERS, WARM_UP, DemoSettings, Lake, Load
from lakestream_demo.steps import Phase, Timeline
from lakestream_demo.warmth import WarmUp, all_warm
from lakestream_demo.workspace import Workspace

POLL_SECONDS = 0.4
SERVER_SECONDS = 30.0
JARS_SECONDS = 900.0
"""Some 140 MB, over whatever connection there is."""
FIRST_BATCH_SECONDS = 240.0
"""Spark's start and its first batch, on a slow machine, twice at a time."""
WARM_UP_SECONDS = 120.0
"""The warm-up goes on for at most so long; on a very slow machine the load begins before all is warm."""
LOAD_GRACE_SECONDS = 60.0
"""Beyond its run time: the last records may have been throttled and are sent again."""
STALL_SECONDS = 120.0
"""Draining goes on as long as batches are committed; this is how long none may be."""
STOP_SECONDS = 90.0
INSPECTION_SECONDS = 900.0


class Run:
    """One run. The phases are its methods, called in their order by `run`."""

    def __init__(
        self,
        settings: DemoSettings,
        workspace: Workspace,
        supervisor: Supervisor,
        interrupt: Interrupt,
        screen: Screen,
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._supervisor = supervisor
        self._interrupt = interrupt
        self._screen = screen
        self._timeline = Timeline()
        self._running: list[Child] = []
        self._observer: Observer | None = None
        self._observing = False
        self._load_began = self._load_ended = datetime.now(UTC)
        self._started_at = datetime.now(UTC)
        self._s3 = _free_endpoint() if settings.lake is Lake.S3 else None
        self._document = self._make_document(_free_endpoint())
        self._environment = commands.child_environment(os.environ, self._document.region, workspace.scratch, self._s3)

    def run(self) -> DemoResult:
        """Do it all.

        Raises:
            DemoError: something failed, took too long, or was interrupted.
        """
        try:
            inspection = self._phases()
        except DemoError:
            self._timeline = self._timeline.fail(time.monotonic())
            self._show()
            raise
        self._timeline = self._timeline.end(time.monotonic())
        self._show()
        return self._result(inspection)

    def _phases(self) -> Inspection:
        self._check()
        kinesis, s3 = self._start_servers()
        writers, warm_up = self._start_applications()
        self._warm_up()
        self._load(warm_up)
        self._drain()
        self._stop_pipeline(writers, kinesis)
        inspection = self._inspect()
        if s3 is not None:
            self._stop([s3])
        return inspection

    def _make_document(self, endpoint: str) -> DemoDocument:
        lake = str(self._workspace.lake) if self._s3 is None else f"s3a://{commands.BUCKET}"
        text = ORDERS.read_text(encoding="utf-8")
        document = make_document(text, endpoint=endpoint, lake=lake, table=self._settings.table)
        self._workspace.document.write_text(document.text, encoding="utf-8")
        return document

    def _check(self) -> None:
        self._begin(Phase.CHECKS)
        try:
            java = java_home()
        except LakeStreamError as error:
            raise DemoError(str(error)) from error
        about_java = f"Java {major_version(java)} in {java}"
        self._describe(f"{about_java}; looking for the jars (the first time, some 140 MB are fetched)")
        jars = self._supervisor.start(commands.jars_command(self._environment))
        self._until(lambda: jars.status is not None, JARS_SECONDS, "fetching the jars")
        self._supervisor.finish(jars)
        self._describe(about_java)

    def _start_servers(self) -> tuple[Child, Child | None]:
        self._begin(Phase.SERVERS)
        document, shards = self._document, self._settings.shards
        port = int(document.endpoint.rsplit(":", 1)[1])
        kinesis = self._start(commands.kinesis_command(self._environment, port, document.stream, shards))
        self._until_answers(f"{document.endpoint}/metrics", "the local Kinesis")
        detail = f"{document.endpoint}, stream {document.stream} with {shards} shards"
        self._describe(detail)
        if self._s3 is None:
            return kinesis, None
        s3 = self._start(commands.s3_command(self._environment, int(self._s3.rsplit(":", 1)[1])))
        self._until_answers(self._s3, "the S3 server")
        create_bucket(self._s3, commands.BUCKET)
        self._describe(f"{detail}; S3 at {self._s3}")
        return kinesis, s3

    def _start_applications(self) -> tuple[list[Child], Child]:
        """The applications, and the users that send small batches until they are told to end."""
        self._begin(Phase.START)
        names = [writer.name for writer in self._document.writers]
        self._describe(f"Spark starts; {' and '.join(names)} commit a first batch")
        writers = [self._start(commands.ingest_command(self._environment, self._workspace, name)) for name in names]
        orders = self._start_load(FIRST_ORDERS)
        files = [self._workspace.progress(name) for name in names]
        self._until(lambda: orders.status is not None, FIRST_BATCH_SECONDS, "the first orders")
        self._supervisor.finish(orders)
        self._until(lambda: any(file.exists() for file in files), FIRST_BATCH_SECONDS, "a first batch")
        warm_up = self._start_load(WARM_UP)
        self._running.append(warm_up)
        # A batch of records: on a busy machine an application has read the empty stream before the first orders come.
        self._until(
            lambda: all(any(batch.records for batch in read_progress(file)) for file in files),
            FIRST_BATCH_SECONDS,
            "the first batch of each",
        )
        self._describe(f"{' and '.join(names)} have committed a first batch")
        return writers, warm_up

    def _warm_up(self) -> None:
        """Wait until batches take what they will take, and whatever an application does has been done once."""
        loads = (FIRST_ORDERS, WARM_UP, self._settings.load)
        self._observer = Observer(self._workspace, self._document, loads, datetime.now(UTC))
        self._observing = True
        self._begin(Phase.WARM_UP)
        if not self._becomes(self._are_warm, WARM_UP_SECONDS):
            self._describe(f"given up after {WARM_UP_SECONDS:.0f} s, {self._timeline.steps[-1].detail}")

    def _are_warm(self) -> bool:
        warm_ups = [WarmUp.of(writer) for writer in self._document.writers]
        batches = {one.writer: read_progress(self._workspace.progress(one.writer)) for one in warm_ups}
        self._describe(f"batches: {', '.join(one.describe(batches[one.writer]) for one in warm_ups)}")
        return all_warm(warm_ups, batches)

    def _load(self, warm_up: Child) -> None:
        settings = self._settings
        seconds = settings.duration.total_seconds()
        self._begin(Phase.LOAD, expected=seconds)
        self._load_began = datetime.now(UTC)
        load = self._start_load(settings.load)
        self._stop([warm_up])
        self._until(lambda: load.status is not None, seconds + LOAD_GRACE_SECONDS, "the end of the load")
        self._load_ended = datetime.now(UTC)
        self._supervisor.finish(load)
        assert self._observer is not None
        self._observer.settle(ledger_seen(self._workspace.ledger))
        self._look()
        self._describe(f"{settings.users:,} users sent {self._seen.stream.sent:,} records")

    def _drain(self) -> None:
        self._begin(Phase.DRAIN)
        self._describe("until both applications have read all of the stream")
        while not self._seen.drained:
            self._await_batch()
        self._describe("both applications have read all of the stream")

    def _await_batch(self) -> None:
        read = self._records_read()
        self._until(lambda: self._seen.drained or self._records_read() > read, STALL_SECONDS, "the next batch")

    def _stop_pipeline(self, writers: Sequence[Child], kinesis: Child) -> None:
        self._begin(Phase.STOP)
        self._stop(writers)
        self._stop([kinesis])

    def _inspect(self) -> Inspection:
        # Nothing flows any more, and the report will have all figures.
        self._observing = False
        self._begin(Phase.INSPECTION)
        self._describe("ledger = JSON files? JSON files = Hudi table? then three queries")
        child = self._supervisor.start(
            commands.inspection_command(self._environment, self._workspace, self._load_began)
        )
        self._until(lambda: child.status is not None, INSPECTION_SECONDS, "the audit")
        self._supervisor.finish(child)
        return Inspection.from_json(self._workspace.inspection.read_bytes())

    def _result(self, inspection: Inspection) -> DemoResult:
        settings = self._settings
        seconds = self._timeline.seconds()
        result = DemoResult(
            started_at=self._started_at,
            settings={**asdict(settings), "out": str(settings.out), "duration": format_duration(settings.duration)},
            seconds={**seconds, "total": round(sum(seconds.values()), 3)},
            inspection_seconds=inspection.seconds,
            load=LoadResult(
                users=settings.users,
                seconds=seconds[Phase.LOAD],
                sent=self._seen.stream.sent,
                throttled=self._seen.stream.throttled,
                acknowledged=self._seen.load.acknowledged,
                failed=self._seen.load.failed,
            ),
            tables=inspection.tables,
            audit=inspection.audit,
            queries=inspection.queries,
        )
        self._workspace.result.write_bytes(result.to_json())
        self._report(result)
        return result

    def _report(self, result: DemoResult) -> None:
        """Write the page, and the numbers of its plots."""
        assert self._observer is not None
        began = self._observer.began_at
        history = History(
            began_at=began,
            load_began=(self._load_began - began).total_seconds(),
            load_ended=(self._load_ended - began).total_seconds(),
            moments=tuple(self._observer.moments),
        )
        batches = {table.writer: read_progress(self._workspace.progress(table.writer)) for table in result.tables}
        self._workspace.history.write_bytes(history.to_json())
        self._workspace.report.write_text(page(result, history, batches), encoding="utf-8")

    @property
    def _seen(self) -> Observed:
        assert self._observer is not None
        return self._observer.last

    def _records_read(self) -> int:
        return sum(writer.records for writer in self._seen.writers)

    def _start(self, command: Command) -> Child:
        """Start a child that must run until it is stopped."""
        child = self._supervisor.start(command)
        self._running.append(child)
        return child

    def _start_load(self, load: Load) -> Child:
        return self._supervisor.start(commands.load_command(self._environment, self._workspace, self._document, load))

    def _stop(self, children: Sequence[Child]) -> None:
        """Ask children to end, and wait for them."""
        for child in children:
            self._running.remove(child)
            child.terminate()
        names = " and ".join(child.name for child in children)
        self._until(lambda: all(child.status is not None for child in children), STOP_SECONDS, f"the end of {names}")
        for child in children:
            self._supervisor.finish(child)

    def _until(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        """Watch the run until something is true.

        Raises:
            DeadlineError: it did not become true within `seconds`.
            ChildFailedError, InterruptedDemoError: meanwhile.
        """
        if not self._becomes(done, seconds):
            raise DeadlineError(f"waited {seconds:.0f} s for {what}", "The logs say what was going on.")

    def _becomes(self, done: Callable[[], bool], seconds: float) -> bool:
        """Watch the run until something is true, or the time is over."""
        deadline = time.monotonic() + seconds
        while True:
            self._look()
            if done():
                return True
            if time.monotonic() > deadline:
                return False
            self._supervisor.check(self._running)
            self._interrupt.pause(POLL_SECONDS)

    def _until_answers(self, url: str, what: str) -> None:
        self._until(lambda: get(url) is not None, SERVER_SECONDS, what)

    def _look(self) -> None:
        if self._observing and self._observer is not None:
            self._observer.look(datetime.now(UTC))
        self._show()

    def _show(self) -> None:
        window = self._observer.window if self._observing and self._observer else ()
        self._screen.show(self._timeline, window, time.monotonic())

    def _begin(self, phase: Phase, expected: float | None = None) -> None:
        self._timeline = self._timeline.begin(phase, time.monotonic(), expected=expected)
        self._show()

    def _describe(self, detail: str) -> None:
        self._timeline = self._timeline.describe(detail)


def _free_endpoint() -> str:
    return f"http://{HOST}:{free_port()}"
