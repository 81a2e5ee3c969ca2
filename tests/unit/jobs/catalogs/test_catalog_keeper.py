"""The thread beside the batches; events take the place of time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Set
from datetime import UTC, datetime

from lakestream.catalogs.keeper import CatalogKeeper

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Memory:
    """A catalog that can be out of reach."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.calls: list[Set[str]] = []
        self.tried = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.given_up = False

    def give_up(self) -> None:
        self.given_up = True

    def keep(self, partitions: Set[str]) -> None:
        self.calls.append(frozenset(partitions))
        self.tried.release()
        assert self.go.acquire(timeout=60)
        if self.error is not None:
            raise self.error

    def let(self, count: int = 1) -> None:
        """Let so many calls go, the last of which has begun."""
        for _ in range(count):
            assert self.tried.acquire(timeout=60)
            self.go.release()


def keeper(
    catalog: Memory, partitions: Iterable[str] = (), pause: float = 0.001, last_words: float = 60
) -> CatalogKeeper:
    return CatalogKeeper(catalog, lambda: partitions, now=lambda: NOON, first_pause=pause, last_words=last_words)


def test_the_catalog_is_asked_for_new_partitions_alone() -> None:
    catalog = Memory()
    kept = keeper(catalog, ["dt=1", "dt=2"])
    catalog.let()
    kept.committed(["dt=3"])
    catalog.let()
    for _ in range(3):
        kept.committed(["dt=3", "dt=1", ""])
    kept.close()
    assert catalog.calls[0] == {"dt=1", "dt=2"}
    assert set().union(*catalog.calls[1:]) == {"dt=3"}
    assert (kept.status.completed, kept.status.failed, kept.status.behind) == (len(catalog.calls), 0, 0)


def test_partitions_that_come_during_a_call_are_in_the_next_one() -> None:
    catalog = Memory()
    kept = keeper(catalog)
    assert catalog.tried.acquire(timeout=60)
    kept.committed(["dt=1"])
    kept.committed(["dt=1", "dt=2"])
    assert kept.status.behind == 2
    catalog.go.release()
    catalog.let()
    kept.close()
    assert catalog.calls == [frozenset(), {"dt=1", "dt=2"}]
    assert kept.status.behind == 0


def test_a_catalog_out_of_reach_is_told_tried_again_and_brought_up_to_date() -> None:
    catalog = Memory(RuntimeError("glue:GetTable of lake.orders: connect timeout\nand more"))
    kept = keeper(catalog, ["dt=1"])
    kept.committed(["dt=2"])
    catalog.let(3)
    assert catalog.tried.acquire(timeout=60)
    status = kept.status
    assert (status.name, status.failing, status.failing_since, status.behind) == ("catalog", 3, NOON, 1)
    assert status.error == "glue:GetTable of lake.orders: connect timeout"
    catalog.error = None
    catalog.go.release()
    kept.close()
    assert catalog.calls[-1] == {"dt=1", "dt=2"}
    assert (kept.status.failing, kept.status.failed, kept.status.behind, kept.status.error) == (0, 3, 0, "")


def test_a_listing_that_fails_is_tried_again() -> None:
    catalog = Memory()
    answers: list[Exception | list[str]] = [OSError("no such bucket"), ["dt=1"]]

    def partitions() -> Iterable[str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = CatalogKeeper(catalog, partitions, first_pause=0.001)
    catalog.let()
    kept.close()
    assert catalog.calls == [{"dt=1"}]
    assert (kept.status.completed, kept.status.failed) == (1, 1)


def test_an_end_finishes_what_there_is_and_does_not_wait_for_a_catalog_out_of_reach() -> None:
    catalog = Memory()
    kept = keeper(catalog)
    catalog.let()
    kept.committed(["dt=1"])
    ending = threading.Thread(target=kept.close)
    ending.start()
    catalog.let()
    ending.join(60)
    assert catalog.calls[-1] == {"dt=1"}
    broken = Memory(RuntimeError("no"))
    kept = keeper(broken, pause=3600)
    broken.let()
    kept.close()
    assert kept.status.failing == 1
    assert not broken.given_up


def test_an_end_does_not_wait_for_long_for_a_catalog_that_does_not_answer() -> None:
    catalog = Memory()
    kept = keeper(catalog, ["dt=1"], last_words=0.01)
    assert catalog.tried.acquire(timeout=60)
    kept.close()
    assert catalog.given_up
    catalog.go.release()


def test_a_table_is_listed_once_however_often_its_catalog_fails() -> None:
    catalog = Memory(RuntimeError("no"))
    listed = []

    def partitions() -> Iterable[str]:
        listed.append(1)
        return ["dt=1"]

    kept = CatalogKeeper(catalog, partitions, first_pause=0.001)
    catalog.let(5)
    assert catalog.tried.acquire(timeout=60)
    catalog.error = None
    catalog.go.release()
    kept.close()
    assert catalog.calls[-1] == {"dt=1"}
    assert len(listed) == 1
