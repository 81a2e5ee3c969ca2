"""Three drivers on one log, in any order of steps, with lost requests and answers, and with others
coming in between two requests of one step; the model is two dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule
from obstore.store import MemoryStore

from lakestream.errors import FencedError, OutcomeUnknownError
from lakestream.log import BatchFiles, CheckpointLog, ObstoreLogStore, StaleLogError, committed_files
from lakestream.log.layout import number_of, unpack
from lakestream.model import BatchCommit, BatchPlan, Definition
from lakestream.testing.logs import ORDERS, Fault, FaultyLogStore, ManualClock, commit_of, plan_of

KEEP = 3
FAULTS = st.lists(st.sampled_from(Fault), max_size=4)


class Driver:
    """A driver with its own way to the shared store, and what it has been told."""

    def __init__(self, way: FaultyLogStore, clock: ManualClock) -> None:
        self.way = way
        self.log = CheckpointLog.open(self.way, ORDERS, now=clock, monotonic=clock.monotonic, keep=KEEP)
        self.undecided: BatchPlan | None = None
        """A plan that may have been written. It is put again as it is, or never."""

    def next_plan(self, position: int) -> BatchPlan:
        if self.undecided is not None:
            return self.undecided
        pending = self.log.pending_plans()
        last = pending[-1] if pending else self.log.last_commit()
        plan = plan_of(0 if last is None else last.batch + 1, self.log.epoch, position=position)
        # Each under another one: the next driver has to carry it out by that.
        return replace(plan, definition=Definition(f"a decimal({position}, 0)", None, None))


class LogMachine(RuleBasedStateMachine):
    drivers = Bundle("drivers")

    def __init__(self) -> None:
        super().__init__()
        self.shared = ObstoreLogStore(MemoryStore())
        self.clock = ManualClock()
        self.plans: dict[int, BatchPlan] = {}
        self.commits: dict[int, BatchCommit] = {}
        self.positions = 0
        self.newest_epoch = 0

    @initialize(target=drivers)
    def start(self) -> Driver:
        return self._open()

    @rule(target=drivers)
    def open(self) -> Driver:
        return self._open()

    @rule(target=drivers, rival=drivers)
    def open_while_another_plans(self, rival: Driver) -> Driver:
        def plan_first(key: str) -> None:
            if key.startswith("epochs/"):
                way.before_create = lambda key: None
                self.plan(driver=rival, faults=[], intruder=False)
                self.the_log_is_what_the_model_says()

        way = FaultyLogStore(self.shared, before_create=plan_first)
        return self._open(way)

    @rule(driver=drivers, faults=FAULTS, intruder=st.booleans())
    def plan(self, driver: Driver, faults: list[Fault], intruder: bool) -> None:
        self.positions += 1
        plan = driver.undecided = driver.next_plan(self.positions)
        put = self._put(driver, lambda: driver.log.put_plan(plan), faults, intruder, self.plans, plan.batch)
        if put:
            driver.undecided = None
            assert driver.log.epoch == self.newest_epoch, "a plan was accepted from a driver with a successor"
            assert self._stored_plan(plan.batch) == plan

    @precondition(lambda self: self.plans)
    @rule(driver=drivers, faults=FAULTS, intruder=st.booleans())
    def commit(self, driver: Driver, faults: list[Fault], intruder: bool) -> None:
        pending = driver.log.pending_plans()
        if not pending:
            return
        commit = commit_of(pending[0], driver.log.epoch, files=pending[0].batch % 3)
        superseded = driver.log.epoch < self.newest_epoch
        accepted = self._put(
            driver, lambda: driver.log.put_commit(commit), faults, intruder, self.commits, commit.batch
        )
        if accepted:
            assert not superseded, "a commit was accepted from a driver with a successor"
            assert driver.log.last_commit() == commit

    @rule(driver=drivers, faults=FAULTS)
    def expire(self, driver: Driver, faults: list[Fault]) -> None:
        driver.way.faults = list(faults)
        driver.log.expire()
        done, driver.way.faults = len(driver.way.faults) == len(faults), []
        last = driver.log.last_commit()
        if done and driver.log.epoch == self.newest_epoch and last is not None:
            # A commit whose outcome it does not know may be there as well.
            known = [key for key in self.shared.list("commits") if number_of(key) <= last.batch]
            assert len(known) <= KEEP

    @rule(driver=drivers)
    def look(self, driver: Driver) -> None:
        fenced = False
        try:
            driver.log.check_fence()
        except FencedError:
            fenced = True
        assert fenced == (driver.log.epoch < self.newest_epoch)

    @rule(driver=consumes(drivers))
    def crash(self, driver: Driver) -> None:
        """It is heard of no more."""

    @rule(driver=consumes(drivers), seconds=st.sampled_from([0, 2, 4]))
    def close(self, driver: Driver, seconds: int) -> None:
        self.clock.advance(seconds)
        driver.log.close()

    @invariant()
    def the_log_is_what_the_model_says(self) -> None:
        """Entries never change, and those that are there are the newest."""
        stored = [number_of(key) for key in self.shared.list("commits")]
        for key in self.shared.list("batches"):
            plan = unpack(key, self.shared.get(key), BatchPlan.from_json)
            known = self.plans.setdefault(plan.batch, plan)
            # One that slept while its batch was committed and expired leaves a plan that nobody reads.
            assert known == plan or plan.batch < max(stored, default=0), "a plan changed"
        for batch in stored:
            commit = self._stored_commit(batch)
            assert self.commits.setdefault(batch, commit) == commit, "a commit changed"
            assert commit.cursors == self.plans[batch].cursors, "a commit of something else than the plan"
        assert sorted(self.commits) == list(range(len(self.commits))), "batches are committed in order, without gaps"
        if self.commits:
            assert stored[-1] == max(self.commits), "the newest commit was removed"
            assert stored == list(range(stored[0], stored[-1] + 1))

    @invariant()
    def what_batches_wrote_is_known(self) -> None:
        wrote = [one for _, commit in sorted(self.commits.items()) if (one := BatchFiles.of(commit)).files]
        assert list(committed_files(self.shared)) == wrote

    @invariant()
    def commits_never_go_back_to_an_earlier_driver(self) -> None:
        epochs = [self.commits[batch].epoch for batch in sorted(self.commits)]
        assert epochs == sorted(epochs)

    def _open(self, way: FaultyLogStore | None = None) -> Driver:
        driver = Driver(way or FaultyLogStore(self.shared), self.clock)
        assert driver.log.epoch == self.newest_epoch + 1
        self.newest_epoch = driver.log.epoch
        last = driver.log.last_commit()
        assert (last.batch if last else -1) == max(self.commits, default=-1)
        # What an earlier driver may be writing to a sink right now, this one knows of.
        for batch, plan in self.plans.items():
            if batch > max(self.commits, default=-1):
                assert plan in driver.log.pending_plans()
        return driver

    def _put(
        self,
        driver: Driver,
        put: Callable[[], None],
        faults: list[Fault],
        intruder: bool,
        entries: Mapping[int, BatchPlan | BatchCommit],
        batch: int,
    ) -> bool:
        """Carry out one step; True if the log accepted it."""
        driver.way.faults = list(faults)
        if intruder:
            driver.way.before_create = lambda key: self._intrude(driver)
        try:
            put()
        except FencedError:
            assert driver.log.epoch < self.newest_epoch
            return False
        except StaleLogError:
            assert driver.log.epoch == self.newest_epoch
            assert entries[batch].epoch < driver.log.epoch
            return False
        except OutcomeUnknownError:
            assert len(faults) >= 3
            return False
        finally:
            driver.way.faults = []
            driver.way.before_create = lambda key: None
        return True

    def _intrude(self, driver: Driver) -> None:
        """Another driver opens, and carries out what it finds, just before the driver's object is created."""
        driver.way.before_create = lambda key: None
        self.the_log_is_what_the_model_says()
        other = self._open()
        for plan in other.log.pending_plans():
            other.log.put_commit(commit_of(plan, other.log.epoch, files=plan.batch % 3))

    def _stored_plan(self, batch: int) -> BatchPlan:
        key = f"batches/{batch:012d}.json.gz"
        return unpack(key, self.shared.get(key), BatchPlan.from_json)

    def _stored_commit(self, batch: int) -> BatchCommit:
        key = f"commits/{batch:012d}.json.gz"
        return unpack(key, self.shared.get(key), BatchCommit.from_json)


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=settings().max_examples * 3 // 2, stateful_step_count=30)
