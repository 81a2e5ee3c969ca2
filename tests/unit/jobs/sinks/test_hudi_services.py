"""The thread beside ingestion; events take the place of time."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from lakestream.sinks.hudi.services import Service, TableServices, pause_of, retry_after

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Rounds:
    """Work that waits until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.error: Exception | None = None

    def __call__(self) -> None:
        self.begun.release()
        assert self.go.acquire(timeout=60)
        if self.error is not None:
            raise self.error

    def let(self, count: int) -> None:
        for _ in range(count):
            self.go.release()


def beside(rounds: Rounds, every: int) -> TableServices:
    return TableServices([Service("compaction", rounds, slows=True)], every)


def test_the_first_commit_begins_a_round_and_then_every_nth() -> None:
    rounds = Rounds()
    services = beside(rounds, every=3)
    assert not rounds.begun.acquire(blocking=False)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    rounds.let(1)
    services.drain()
    services.committed()
    services.committed()
    assert [one.behind for one in services.status] == [2]
    assert not rounds.begun.acquire(blocking=False)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    rounds.let(1)
    services.drain()
    services.close()
    (status,) = services.status
    assert (status.completed, status.failed, status.error) == (2, 0, "")


def test_what_has_to_be_planned_is_planned_by_who_commits_when_a_round_begins() -> None:
    rounds, planned = Rounds(), []
    services = TableServices([Service("compaction", rounds, plan=lambda: planned.append(threading.get_ident()))], 2)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    for _ in range(5):
        services.committed()
    assert planned == [threading.get_ident()], "none while a round runs"
    rounds.let(1)
    services.drain()
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    assert planned == [threading.get_ident()] * 2
    rounds.let(1)
    services.close()


def test_a_plan_that_fails_is_a_failure_of_its_service_alone() -> None:
    ran: list[str] = []

    def plan() -> None:
        if not ran:
            raise RuntimeError("no listing")

    services = TableServices(
        [
            Service("compaction", lambda: ran.append("compaction"), plan=plan),
            Service("cleaning", lambda: ran.append("cleaning")),
        ],
        1,
    )
    services.committed()
    services.drain()
    assert ran == ["cleaning"]
    compaction, cleaning = services.status
    assert (compaction.failing, compaction.error, compaction.behind) == (1, "no listing", 1)
    assert cleaning.completed == 1
    services.committed()
    services.drain()
    services.close()
    assert ran == ["cleaning", "compaction", "cleaning"]
    assert services.status[0].failing == 0


def test_services_fail_apart_and_are_tried_again_and_fail_nothing() -> None:
    errors: dict[str, Exception] = {"compaction": RuntimeError("no space left\n\tat java.io"), "cleaning": OSError()}
    ran: list[str] = []
    times = iter(NOON + timedelta(minutes=number) for number in range(10))

    def service(name: str) -> Service:
        def run() -> None:
            ran.append(name)
            if name in errors:
                raise errors[name]

        return Service(name, run, slows=name == "compaction")

    names = ["compaction", "cleaning", "archiving"]
    services = TableServices([service(name) for name in names], every=1, now=lambda: next(times))
    for _ in range(2):
        services.committed()
        services.drain()
    assert ran == names * 2
    compaction, cleaning, archiving = services.status
    assert (compaction.failing, compaction.failed, compaction.behind) == (2, 2, 2)
    assert (compaction.error, compaction.failing_since) == ("no space left", NOON)
    assert (cleaning.error, cleaning.failing_since) == ("OSError", NOON + timedelta(minutes=1))
    assert (archiving.completed, archiving.failing, archiving.behind) == (2, 0, 0)
    del errors["compaction"]
    services.committed()
    services.drain()
    services.close()
    compaction, cleaning, _ = services.status
    assert (compaction.failing, compaction.failed, compaction.completed) == (0, 2, 1)
    assert (compaction.error, compaction.failing_since, compaction.behind) == ("", None, 0)
    assert cleaning.failing == 3


def test_what_failed_is_tried_again_by_itself_where_no_commit_comes() -> None:
    """An outage of a storage that a stream rests after: two services met it, and the third did not."""
    seconds_since = [0.0]
    ran: list[str] = []
    out = {"compaction", "cleaning"}

    def service(name: str) -> Service:
        def work() -> None:
            ran.append(name)
            if name in out:
                raise OSError("connection refused")

        return Service(name, work if name != "compaction" else lambda: None, work if name == "compaction" else None)

    names = ["compaction", "cleaning", "archiving"]
    services = TableServices([service(name) for name in names], every=10, monotonic=lambda: seconds_since[0])

    def after(seconds: float) -> list[str]:
        ran.clear()
        seconds_since[0] += seconds
        services.tend()
        services.drain()
        return list(ran)

    assert after(0) == [], "nothing has failed"
    services.committed()
    services.drain()
    assert ran == names
    assert after(30) == []
    assert after(1) == ["compaction", "cleaning"], "half a minute has passed"
    out.remove("compaction")
    assert after(60) == []
    assert after(1) == ["compaction", "cleaning"], "and a whole one from there"
    compaction, cleaning, archiving = services.status
    assert (compaction.failing, compaction.failed, compaction.completed, compaction.behind) == (0, 2, 1, 0)
    assert (cleaning.failing, cleaning.behind, archiving.completed) == (3, 1, 1)
    out.clear()
    assert after(600) == ["cleaning"]
    assert after(3600) == []
    services.close()


def test_what_failed_is_not_begun_beside_a_round_that_runs() -> None:
    seconds_since = [0.0]
    rounds = Rounds()
    rounds.error = OSError()
    services = TableServices([Service("cleaning", rounds)], every=1, monotonic=lambda: seconds_since[0])
    rounds.let(1)
    services.committed()
    services.drain()
    services.committed()
    seconds_since[0] += 3600
    services.tend()
    rounds.let(1)
    services.drain()
    services.close()
    assert [one.failed for one in services.status] == [2]


@pytest.mark.parametrize(("failures", "seconds"), [(1, 30), (2, 60), (3, 120), (5, 480), (6, 600), (1_000_000, 600)])
def test_what_keeps_failing_is_tried_ever_less_often(failures: int, seconds: float) -> None:
    assert retry_after(failures) == timedelta(seconds=seconds)


def test_ingestion_waits_for_a_round_that_it_is_far_ahead_of() -> None:
    rounds = Rounds()
    services = beside(rounds, every=2)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    for _ in range(7):
        services.committed()
    services.throttle()  # seven commits ahead of a round of two: not yet four rounds' worth
    services.committed()
    waited = threading.Event()

    def ingest() -> None:
        services.throttle()
        waited.set()

    ingestion = threading.Thread(target=ingest)
    ingestion.start()
    assert not waited.is_set()
    rounds.let(2)
    assert waited.wait(60)
    ingestion.join()
    services.drain()
    services.close()


@pytest.mark.parametrize(
    ("behind", "seconds"), [(0, 0), (39, 0), (40, 1), (49, 1), (50, 2), (80, 16), (90, 30), (1_000_000, 30)]
)
def test_a_pause_grows_with_what_is_not_compacted_and_has_a_bound(behind: int, seconds: float) -> None:
    assert pause_of(behind, every=10) == seconds


@pytest.mark.parametrize(("slows", "fails"), [(False, True), (True, False)])
def test_batches_pause_for_nothing_but_a_failing_compaction(slows: bool, fails: bool) -> None:
    rounds = Rounds()
    rounds.error = RuntimeError("no") if fails else None
    rounds.let(100)
    services = TableServices([Service("x", rounds, slows=slows)], every=1)
    for _ in range(100):
        services.committed()
        services.drain()
    # A failing compaction of as many commits has batches wait for the longest, half a minute.
    assert services.pause() < 15
    services.close()


def test_a_pause_ends_when_the_driver_does() -> None:
    rounds = Rounds()
    rounds.error = RuntimeError("no")
    rounds.let(100)
    services = beside(rounds, every=1)
    for _ in range(30):
        services.committed()
        services.drain()
    paused: list[float] = []
    ingestion = threading.Thread(target=lambda: paused.append(services.pause()))
    ingestion.start()
    services.close()
    ingestion.join(60)
    assert len(paused) == 1
    assert paused[0] < 30


def test_close_waits_for_the_round_that_runs() -> None:
    rounds = Rounds()
    services = beside(rounds, every=1)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    closing = threading.Thread(target=services.close)
    closing.start()
    assert closing.is_alive()
    rounds.let(1)
    closing.join(60)
    assert not closing.is_alive()
    assert services.status[0].completed == 1


def test_what_somebody_asks_for_is_a_round_of_its_own_behind_the_one_that_runs() -> None:
    rounds, by_hand = Rounds(), Rounds()
    services = beside(rounds, every=2)
    asked = Service("compaction", by_hand, slows=True)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    assert services.begin(asked) is None, "a round runs"
    rounds.let(1)
    services.drain()
    done = services.begin(asked)
    assert done is not None
    assert by_hand.begun.acquire(timeout=60)
    services.committed()
    services.committed()
    assert not rounds.begun.acquire(blocking=False), "one after the other"
    by_hand.let(1)
    done.result(timeout=60)
    services.drain()
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    rounds.let(1)
    services.close()
    assert [(one.completed, one.failed) for one in services.status] == [(3, 0)]


def test_a_request_fails_with_its_round_or_its_plan() -> None:
    rounds = Rounds()
    rounds.error = RuntimeError("no listing")
    rounds.let(1)
    services = beside(rounds, every=2)
    done = services.begin(Service("compaction", rounds))
    assert done is not None
    with pytest.raises(RuntimeError, match="no listing"):
        done.result(timeout=60)
    services.drain()

    def plan() -> None:
        raise RuntimeError("no plan")

    done = services.begin(Service("compaction", rounds, plan=plan))
    assert done is not None
    with pytest.raises(RuntimeError, match="no plan"):
        done.result(timeout=0)
    services.close()
    assert [(one.failed, one.error) for one in services.status] == [(2, "no plan")]


def test_a_round_that_does_not_go_on_is_not_waited_for() -> None:
    rounds, goes_on = Rounds(), False
    services = TableServices([Service("compaction", rounds)], every=1, goes_on=lambda: goes_on)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    for _ in range(4):
        services.committed()
    services.throttle()
    services.drain()
    assert not services.close()
    goes_on = True
    rounds.let(1)
    assert services.close()
