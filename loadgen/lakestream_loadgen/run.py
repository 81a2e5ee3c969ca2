"""A load run in one process, tied to Locust's events: what users share, and how it starts and ends.

On a worker, or in a run of one process: test_start opens ledger and producer; test_stopping stops new events
and waits for what is under way; test_stop, when all users are gone, closes. The master writes nothing: it
tells the workers how many they are, and lets them drain before it stops them, so that the last
acknowledgements are in the statistics that it shows.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import gevent
from gevent.event import Event
from locust.argument_parser import get_parser
from locust.env import Environment
from locust.runners import STATE_INIT, MasterRunner, Runner, WorkerRunner

from lakestream_loadgen.errors import LedgerError, LoadgenError, SettingsError
from lakestream_loadgen.events import OrderEvents
from lakestream_loadgen.kinesis.batching import BatchLimits
from lakestream_loadgen.kinesis.client import HttpKinesisClient, KinesisEndpoint
from lakestream_loadgen.kinesis.producer import KinesisProducer, ProducerSettings
from lakestream_loadgen.ledger.none import NoLedger
from lakestream_loadgen.pacer import Pacer
from lakestream_loadgen.pacing import Part
from lakestream_loadgen.settings import NO_HOST, LoadSettings, load_settings
from lakestream_loadgen.statistics import LocustStatistics, RecordsSettled
from lakestream_loadgen.status import CANNOT, exit_status

if TYPE_CHECKING:
    from lakestream_loadgen.ledger.writer import LedgerWriter

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 40.0
"""How long the end of a run waits for outcomes: longer than a record is tried (see RetryPolicy)."""

MISSING_SECONDS = 15.0
"""How long it waits for workers without a heartbeat for some seconds."""

_WORKERS = "lakestream_workers"
_DRAIN = "lakestream_drain"
_DRAINED = "lakestream_drained"
_FAILED = "lakestream_failed"


def run_prefix(started: float, worker: int) -> str:
    """Leads every id of one worker in one run, e.g. ``mb3k9x2f-w0``: milliseconds since the epoch in base 36."""
    digits, number = "", int(started * 1000)
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{digits}-w{worker}"


def _opened(settings: LoadSettings, prefix: str) -> LedgerWriter | NoLedger:
    """
    Raises:
        LedgerError: it cannot be written to.
    """
    if settings.ledger is None:
        return NoLedger()
    from lakestream_loadgen.ledger.writer import LedgerWriter  # loads PyArrow, which a master needs not

    try:
        return LedgerWriter(settings.ledger, stream=settings.stream, prefix=prefix)
    except OSError as error:
        raise LedgerError(f"--ledger {settings.ledger} cannot be written to: {error.strerror}") from error


def _tame_garbage_collection() -> None:
    """Records and orders form no cycles, but make so many objects that by default a sixth of the CPU's time
    goes into looking for some, again and again through all modules and users."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


class LoadRun:
    """What the users of a process share. ``producer``, ``events`` and ``pacer`` exist while a test runs."""

    producer: KinesisProducer
    events: OrderEvents
    pacer: Pacer
    _endpoint: KinesisEndpoint

    _runs: ClassVar[WeakKeyDictionary[Environment, LoadRun]] = WeakKeyDictionary()

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        # Kept apart: a master sends all its options to its workers, in place of theirs, and may have done so by now.
        is_worker = isinstance(environment.runner, WorkerRunner)
        self._own_ledger = (load_settings(get_parser().parse_args()) if is_worker else self._told()).ledger
        self.stop_requested = False
        self.installed = Event()
        """Until then a worker's users, which Locust may have started already, have nothing to write to."""
        self.is_under_way = self.is_ending = False
        """Whether a test runs, also one that is only this master's; and whether it is being stopped."""
        self._settled = RecordsSettled(environment)
        self._part: Part | None = None
        self._master: _Master | None = None
        self._ledger: LedgerWriter | NoLedger | None = None

    @classmethod
    def install(cls, environment: Environment, **_: Any) -> None:
        """Listener for Locust's init event. Ends the process with a clear message if the settings are wrong."""
        try:
            run = cls._runs[environment] = cls(environment)
            if environment.parsed_options is not None and environment.parsed_options.host:
                raise SettingsError(f"--host: {NO_HOST}")
            logger.info("load: %s", run.settings)
            if not isinstance(environment.runner, MasterRunner):
                run._endpoint = KinesisEndpoint.from_environment()
                environment.host = run._endpoint.url
        except SettingsError as error:
            sys.stderr.write(f"lakestream load: {error}\n")
            sys.exit(CANNOT)
        run._follow()
        if isinstance(environment.runner, MasterRunner):
            run._master = _Master(environment.runner)
            # Or the second worker that comes late would have a share of the rate, and no users to write it.
            environment.parsed_options.enable_rebalancing = True  # type: ignore[union-attr]  # there are settings
        else:
            run._listen()
            if getattr(environment.runner, "worker_state", STATE_INIT) != STATE_INIT:
                # Of a worker that comes late the test began meanwhile, and nobody listened.
                run._start()
            run.installed.set()
        environment.events.quitting.add_listener(run._quitting)
        if environment.shape_class is not None:
            # Headless, Locust handles SIGTERM only when its shape has ended; until then it would just die.
            gevent.signal_handler(signal.SIGTERM, run._request_stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # That one raises in whatever greenlet has the CPU, mostly a sender, which would be gone.
            gevent.signal_handler(signal.SIGINT, gevent.getcurrent().throw, KeyboardInterrupt)
        # Locust's timer of the run time, which comes next, counts from the time that the event loop knows.
        gevent.get_hub().loop.update_now()

    @classmethod
    def of(cls, environment: Environment) -> LoadRun:
        """The run of a Locust environment.

        Raises:
            LoadgenError: the locustfile did not install it.
        """
        if environment not in cls._runs:
            raise LoadgenError("add to the locustfile: events.init.add_listener(LoadRun.install)")
        return cls._runs[environment]

    @property
    def settings(self) -> LoadSettings:
        """As the options say now: the web page may have changed them, and a master sends them to its workers."""
        told = self._told()
        return replace(told, ledger=self._own_ledger or told.ledger)

    def _told(self) -> LoadSettings:
        if self._environment.parsed_options is None:
            raise SettingsError("Locust has parsed no options")
        return load_settings(self._environment.parsed_options)

    @property
    def is_open(self) -> bool:
        """Whether ``producer``, ``events`` and ``pacer`` are those of a test that runs."""
        return self._ledger is not None

    @property
    def _runner(self) -> Runner:
        if self._environment.runner is None:
            raise LoadgenError("the Locust environment has no runner")
        return self._environment.runner

    def _follow(self) -> None:
        def follow(*, under_way: bool, ending: bool) -> None:
            self.is_under_way, self.is_ending = under_way, ending

        events = self._environment.events
        events.test_start.add_listener(lambda **_: follow(under_way=True, ending=False))
        events.test_stopping.add_listener(lambda **_: follow(under_way=True, ending=True))
        events.test_stop.add_listener(lambda **_: follow(under_way=False, ending=False))

    def _listen(self) -> None:
        events = self._environment.events
        events.test_start.add_listener(self._start)
        events.test_stopping.add_listener(lambda **_: self.drain())
        events.test_stop.add_listener(self._stop)
        runner = self._runner
        if isinstance(runner, WorkerRunner):
            runner.register_message(_WORKERS, self._on_workers)
            runner.register_message(_DRAIN, self._on_drain, concurrent=True)

    def _start(self, **_: Any) -> None:
        try:
            self._open(self.settings, time.time())
        except (LoadgenError, OSError) as error:
            self._fail(f"the load cannot start: {error}")
        if not isinstance(self._runner, WorkerRunner):
            self._part = Part(workers=1, began=time.monotonic())
            if self._environment.shape_class is not None:
                # As a master's: its run time is not for what took a while to load.
                self._environment.shape_class.reset_time()

    def _fail(self, why: str) -> None:
        """End this process; its master goes on with the other workers, and tells of it by its exit status."""
        logger.critical("%s", why)
        self._environment.process_exit_code = CANNOT
        if isinstance(self._runner, WorkerRunner):
            self._runner.send_message(_FAILED, {"why": why})
        gevent.spawn(self._runner.quit)

    def _open(self, settings: LoadSettings, now: float) -> None:
        _tame_garbage_collection()
        worker = max(getattr(self._environment.runner, "worker_index", 0), 0)
        prefix = run_prefix(now, worker)
        self._ledger = _opened(settings, prefix)
        # By a greenlet of its own: they tell of it in the event loop, where nothing may wait.
        on_failure = partial(gevent.spawn, self._fail)
        self.events = OrderEvents(seed=settings.seed, worker=worker, prefix=prefix, mix=settings.mix)
        self.producer = KinesisProducer(
            ProducerSettings(settings.stream, settings.connections, BatchLimits(linger=settings.linger)),
            HttpKinesisClient(self._endpoint, connections=settings.connections),
            ledger=self._ledger,
            observer=LocustStatistics(self._environment, settings.stream, self._settled),
            random=Random(),
            on_failure=on_failure,
        )
        self.pacer = Pacer(settings.shape, lambda: self._part, lambda: self.producer.backlog, on_failure)

    def _request_stop(self) -> None:
        self.stop_requested = True
        runner, options = self._runner, self._environment.parsed_options
        headless = options is not None and options.headless
        if headless and isinstance(runner, MasterRunner) and runner.state == STATE_INIT and not runner.shape_greenlet:
            # Locust waits for its workers, and looks at nothing else.
            logger.critical("the load has not started: SIGTERM came before its workers")
            runner.quit()
            sys.exit(CANNOT)

    def drain(self) -> None:
        """Stop new events and wait until everything under way is settled; at once if nothing is."""
        if self._ledger is None:
            return
        # First: who was given tokens hands in what they are for.
        self.pacer.stop()
        began = time.monotonic()
        left = self.producer.drain(DRAIN_SECONDS)
        if left:
            logger.warning("%d records are not settled after %.0f s, and are given up", left, time.monotonic() - began)

    def _stop(self, **_: Any) -> None:
        self._close()
        self._ledger = self._part = None

    def _close(self) -> None:
        if self._ledger is None:
            return
        self.producer.close()
        try:
            self._ledger.close()
        except (LoadgenError, OSError) as error:
            self._fail(f"the ledger cannot be ended: {error}")

    def _quitting(self, environment: Environment, **_: Any) -> None:
        # After SIGTERM Locust asks for the exit code before it stops the users.
        self.drain()
        self._close()
        if isinstance(environment.runner, WorkerRunner):
            self._report(environment.runner)
        missing = self._master.drain() if self._master else set()
        if environment.process_exit_code is None:
            environment.process_exit_code = exit_status(environment, self._settled, missing)

    def _on_workers(self, environment: Environment, msg: Any) -> None:
        workers = max(int(msg.data["workers"]), 1)
        # Later messages tell when the run began no better: each took its time to come.
        began = self._part.began if self._part else time.monotonic() - float(msg.data["elapsed"])
        self._part = Part(workers, began)

    def _on_drain(self, environment: Environment, msg: Any) -> None:
        runner = self._runner
        assert isinstance(runner, WorkerRunner)  # only workers are asked
        self.drain()
        # With the last acknowledgements, and before the answer: a master that quits waits half a second for reports.
        self._report(runner)
        runner.send_message(_DRAINED)

    def _report(self, runner: WorkerRunner) -> None:
        report: dict[str, Any] = {}
        self._environment.events.report_to_master.fire(client_id=runner.client_id, data=report)
        runner.send_message("stats", report)


class _Master:
    """The master's side: shares the load among the workers that are there, and drains them at the end."""

    def __init__(self, runner: MasterRunner) -> None:
        self._runner = runner
        self._drained: set[str] = set()
        self._lost: set[str] = set()
        self._news = Event()
        self._settled = Event()
        self._settled.set()
        self._began = 0.0
        self._greenlet: gevent.Greenlet | None = None
        runner.register_message(_DRAINED, self._on_drained)
        runner.register_message(_FAILED, self._on_failed)
        runner.environment.events.test_start.add_listener(self._start)
        runner.environment.events.test_stopping.add_listener(lambda **_: self.drain())

    def _start(self, **_: Any) -> None:
        self._began = time.monotonic()
        self._lost.clear()
        # Before the workers are told to spawn users: Locust sends those messages after this event.
        self._tell_workers()
        self._greenlet = gevent.spawn(self._keep_telling)

    def _keep_telling(self) -> None:
        while True:
            gevent.sleep(1.0)
            self._tell_workers()
            self._note_lost()

    def _tell_workers(self) -> None:
        elapsed = time.monotonic() - self._began
        self._runner.send_message(_WORKERS, {"workers": self._runner.worker_count, "elapsed": elapsed})

    def _missing(self) -> set[str]:
        return {one.id for one in self._runner.clients.missing}

    def _note_lost(self) -> None:
        missing = self._missing()
        for worker in missing - self._lost:
            logger.warning("worker %s is not heard of: what it had sent may not have been written", worker)
        # Some are just slow, and come back. Locust forgets the others after a while.
        self._lost = (self._lost | missing) - ({one.id for one in self._runner.clients.all} - missing)

    def drain(self) -> set[str]:
        """Have the workers settle what is under way; at once if no run is. Returns those that were lost in this run."""
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None
            self._settled.clear()
            abandoned = self._missing() if not self._runner.worker_count else set()
            if abandoned:
                logger.warning("the load is at its end since no worker was heard of: it is not what was asked for")
            try:
                self._drain()
            finally:
                self._settled.set()
            # Also of those that came back by now.
            self._lost |= abandoned
        # Asked for once more, as by a second SIGTERM: what is said next is the end of the same run.
        self._settled.wait()
        return self._lost

    def _drain(self) -> None:
        self._drained.clear()
        # Who comes from now on was not asked, and does not answer.
        asked = {one.id for one in self._runner.clients.all}
        self._runner.send_message(_DRAIN)
        began = time.monotonic()
        while not self._drained.issuperset(self._awaited(time.monotonic() - began) & asked):
            self._news.clear()
            self._news.wait(timeout=1.0)
            # While there is something to wait for, as well: Locust forgets after a minute who is missing.
            self._note_lost()
        self._note_lost()

    def _awaited(self, seconds: float) -> set[str]:
        """Workers whose answer is waited for after so many seconds: one that is not heard of may just be slow."""
        if seconds > DRAIN_SECONDS + 5.0:
            return set()
        clients = self._runner.clients
        return {one.id for one in clients.all if one not in clients.missing or seconds < MISSING_SECONDS}

    def _on_drained(self, environment: Environment, msg: Any) -> None:
        self._drained.add(msg.node_id)
        self._news.set()

    def _on_failed(self, environment: Environment, msg: Any) -> None:
        logger.critical("worker %s: %s", msg.node_id, msg.data["why"])
        environment.process_exit_code = CANNOT
