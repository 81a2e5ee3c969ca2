"""Runs the trials that are missing, one after the other, and keeps what each has found."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakestream.errors import LakeStreamError
from lakestream.spark.failures import SPARK_ERRORS
from lakestream.spark.session import SessionSettings, build_session, stop_session
from lakestream_bench._counting_s3 import CountingS3, counting_s3
from lakestream_bench._processes import is_ending
from lakestream_bench.compare.arms import ARMS
from lakestream_bench.compare.history import History, recorded
from lakestream_bench.compare.looking import Looker
from lakestream_bench.compare.machine import setup
from lakestream_bench.compare.method import Turn, rotated
from lakestream_bench.compare.requests import count_requests
from lakestream_bench.compare.results import Requests, Results, Setup, Trial, TrialStore
from lakestream_bench.compare.scenarios import Scenario
from lakestream_bench.compare.trial import run_trial
from lakestream_bench.compare.truth import WrongAnswerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakestream.storage import S3Settings

CORES = 2
_MEMORY = "3g"
_WARM_UP_BATCHES = 4
_FAILURES = (WrongAnswerError, LakeStreamError, *SPARK_ERRORS)
"""Of an arm; the others are run all the same."""


@dataclass(frozen=True)
class Comparison:
    """What is to be run."""

    scenarios: tuple[Scenario, ...]
    arms: tuple[str, ...]
    repetitions: int
    warm_repetitions: int
    requests: bool
    """Whether each arm is also written to S3 once, to count its requests."""


def run(comparison: Comparison, kept: Path) -> Results:
    """Run what has not been run, telling of each trial on stderr.

    Args:
        comparison: what is to be run.
        kept: folder of the finished trials, which an interrupted run is taken up from. Tables are written beside it.
    """
    with ExitStack() as stack:
        # Not with what is temporary: that may be in memory, and there is no cold read.
        beside = tempfile.TemporaryDirectory(prefix="lakestream-compare-", dir=kept.parent.resolve())
        scratch = Path(stack.enter_context(beside))
        s3 = stack.enter_context(counting_s3()) if comparison.requests else None
        spark = stack.enter_context(_session(scratch, s3.settings if s3 else None))
        facts = setup(spark, comparison.scenarios, comparison.warm_repetitions)
        store = TrialStore(kept, facts)
        if store.others:
            _tell(f"{kept} also has trials of other versions, sources, machines or settings; they are not used")
        runner = _Runner(spark, comparison, scratch, store, s3)
        runner.run()
        return runner.results(facts)


@contextmanager
def _session(scratch: Path, s3: S3Settings | None) -> Iterator[SparkSession]:
    # Before the JVM starts, whose workers inherit them. Whatever credentials the user has are of no use here.
    os.environ |= {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1"}
    on_interrupt = signal.getsignal(signal.SIGINT)
    spark = build_session(SessionSettings("compare", CORES, _MEMORY, hudi=True, s3=s3, local_dir=scratch / "spark"))
    # PySpark's own calls the JVM, also within another call of it, which fails then.
    signal.signal(signal.SIGINT, on_interrupt)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        stop_session(spark)


@dataclass(frozen=True)
class _Runner:
    spark: SparkSession
    comparison: Comparison
    scratch: Path
    store: TrialStore
    s3: CountingS3 | None

    def run(self) -> None:
        """Run the missing trials scenario by scenario: those of one read the same stream."""
        missing = [turn for turn in self._turns() if self._is_missing(turn)]
        if len(missing) < len(self._turns()):
            _tell(f"{len(self._turns()) - len(missing)} of {len(self._turns())} trials are there from a run before")
        progress = _Progress(len(missing))
        warm: set[str] = set()
        for scenario in self.comparison.scenarios:
            turns = [turn for turn in missing if turn.scenario == scenario.name]
            uncounted = self._uncounted(scenario)
            if not turns and not uncounted:
                continue
            # To count warms up as well: an arm is written and asked, and nothing is timed.
            warm.update(uncounted)
            if turns:
                self._warm_up([arm for arm in self.comparison.arms if arm not in warm])
                warm.update(self.comparison.arms)
            with recorded(scenario) as history:
                for arm in uncounted:
                    self._count(scenario, arm, history)
                for turn in turns:
                    progress.begin(f"{scenario.name}, {ARMS[turn.arm].title}, repetition {turn.repetition + 1}")
                    trial = self._trial(turn, scenario, history)
                    self.store.put(scenario, trial)

    def results(self, facts: Setup) -> Results:
        """All that is kept of this comparison."""
        kept = [(self._scenario(turn), trial) for turn in self._turns() if (trial := self._kept(turn)) is not None]
        counted = (
            self.store.requests(scenario, arm) for scenario in self.comparison.scenarios for arm in self.comparison.arms
        )
        return Results(
            measured_at=self.store.measured_at(kept),
            setup=facts,
            trials=tuple(trial for _, trial in kept),
            requests=tuple(one for one in counted if one is not None),
        )

    def _turns(self) -> list[Turn]:
        names = [scenario.name for scenario in self.comparison.scenarios]
        return rotated(names, self.comparison.arms, self.comparison.repetitions)

    def _is_missing(self, turn: Turn) -> bool:
        """What failed is tried again."""
        trial = self._kept(turn)
        return trial is None or trial.failure is not None

    def _kept(self, turn: Turn) -> Trial | None:
        return self.store.trial(self._scenario(turn), turn.arm, turn.repetition)

    def _scenario(self, turn: Turn) -> Scenario:
        return next(one for one in self.comparison.scenarios if one.name == turn.scenario)

    def _uncounted(self, scenario: Scenario) -> list[str]:
        arms = self.comparison.arms if self.s3 else ()
        counted = {arm: self.store.requests(scenario, arm) for arm in arms}
        return [arm for arm, requests in counted.items() if requests is None or requests.failure is not None]

    def _warm_up(self, arms: Sequence[str]) -> None:
        """A short trial of each of them, whose figures are thrown away: classes load, and the JVM compiles."""
        if not arms:
            return
        small = replace(self.comparison.scenarios[0], batches=_WARM_UP_BATCHES)
        once = replace(self, comparison=replace(self.comparison, warm_repetitions=1))
        with recorded(small) as history:
            for number, arm in enumerate(arms, 1):
                _tell(f"warming up {number} of {len(arms)}: {ARMS[arm].title}")
                once._trial(Turn(small.name, 0, arm), small, history)

    def _trial(self, turn: Turn, scenario: Scenario, history: History) -> Trial:
        place = self.scratch / "trial"
        looker = Looker(self.spark, history, self.comparison.warm_repetitions, place)
        try:
            return run_trial(self.spark, scenario, ARMS[turn.arm], turn.repetition, history, looker, place)
        except _FAILURES as error:
            if is_ending():
                raise
            _tell(f"  failed: {error}")
            wrong = isinstance(error, WrongAnswerError)
            return Trial(turn.scenario, turn.arm, turn.repetition, "", (), (), failure=str(error), is_wrong=wrong)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _count(self, scenario: Scenario, arm: str, history: History) -> None:
        assert self.s3 is not None
        _tell(f"counting the requests of {ARMS[arm].title} to S3")
        try:
            self.store.put(scenario, count_requests(self.spark, scenario, ARMS[arm], history, self.s3))
        except _FAILURES as error:
            if is_ending():
                raise
            _tell(f"  failed, so no requests cost anything in the report: {error}")
            self.store.put(scenario, Requests(scenario.name, arm, 0, 0, {}, failure=str(error)))


class _Progress:
    """Tells of each trial when it begins, with the time that is left if the others take as long."""

    def __init__(self, trials: int) -> None:
        self._trials = trials
        self._begun = 0
        self._since = time.monotonic()

    def begin(self, what: str) -> None:
        passed = time.monotonic() - self._since
        left = f", some {passed / self._begun * (self._trials - self._begun) / 60:.0f} min left" if self._begun else ""
        self._begun += 1
        _tell(f"{self._begun} of {self._trials}: {what} ({passed:.0f} s so far{left})")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
