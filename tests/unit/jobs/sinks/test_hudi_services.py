"""The thread beside ingestion; events take the place of time."""

import threading

from lakestream.sinks.hudi.services import TableServices


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


def test_the_first_commit_begins_a_round_and_then_every_nth() -> None:
    rounds = Rounds()
    services = TableServices(rounds, every=3)
    assert not rounds.begun.acquire(blocking=False)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    rounds.let(1)
    services.drain()
    services.committed()
    services.committed()
    assert services.status.behind == 2
    assert not rounds.begun.acquire(blocking=False)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    rounds.let(1)
    services.drain()
    services.close()
    assert services.status.rounds == 2
    assert services.status.error is None


def test_a_failure_is_kept_and_tried_again_and_fails_nothing() -> None:
    rounds = Rounds()
    rounds.error = RuntimeError("no space left\n\tat java.io")
    rounds.let(2)
    services = TableServices(rounds, every=1)
    services.committed()
    services.drain()
    assert (services.status.failures, services.status.error) == (1, "no space left")
    assert services.throttle() < 10
    rounds.error = None
    services.committed()
    services.drain()
    services.close()
    assert (services.status.rounds, services.status.failures, services.status.error) == (1, 1, None)


def test_ingestion_waits_for_a_round_that_it_is_far_ahead_of() -> None:
    rounds = Rounds()
    services = TableServices(rounds, every=2)
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


def test_close_waits_for_the_round_that_runs() -> None:
    rounds = Rounds()
    services = TableServices(rounds, every=1)
    services.committed()
    assert rounds.begun.acquire(timeout=60)
    closing = threading.Thread(target=services.close)
    closing.start()
    assert closing.is_alive()
    rounds.let(1)
    closing.join(60)
    assert not closing.is_alive()
    assert services.status.rounds == 1
