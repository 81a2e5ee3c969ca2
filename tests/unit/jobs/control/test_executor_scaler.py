"""From a target to what is asked of Spark: the order of the two steps down, and who has to go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from lakestream.control.executors import Executor, ExecutorCounts, ExecutorScaler, surplus


@dataclass
class Pool:
    """Spark and Kubernetes in one: what is asked for registers when `settle` is called."""

    total: int
    running: dict[int, Executor] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    broken: bool = False
    _next: int = 1

    def settle(self) -> Pool:
        for number in self.leaving:
            del self.running[number]
        self.leaving.clear()
        while len(self.running) < self.total:
            self.running[self._next] = Executor(self._next, 0, 0)
            self._next += 1
        return self

    def counts(self) -> ExecutorCounts:
        if self.broken:
            raise ConnectionError("no JVM")
        return ExecutorCounts(len(self.running) - len(self.leaving), len(self.leaving))

    def executors(self) -> tuple[Executor, ...]:
        return tuple(e for number, e in self.running.items() if number not in self.leaving)

    def finished_tasks(self) -> int:
        return 0

    def request_total(self, executors: int) -> None:
        if self.broken:
            raise ConnectionError("no JVM")
        self.asked.append(f"total {executors}")
        self.total = executors

    def decommission(self, ids: Sequence[int]) -> None:
        assert len(self.running) - len(ids) >= self.total, "Spark would replace what is decommissioned before"
        self.asked.append(f"decommission {sorted(ids)}")
        self.leaving |= set(ids)


def test_the_least_busy_go_first_then_those_with_least_to_hand_over_then_the_youngest() -> None:
    executors = [Executor(1, 2, 0), Executor(2, 0, 900), Executor(3, 0, 10), Executor(4, 0, 10), Executor(5, 1, 0)]
    assert surplus(executors, 4) == (4,)
    assert surplus(executors, 1) == (4, 3, 2, 5)
    assert surplus(executors, 5) == surplus(executors, 9) == ()


def test_more_are_asked_for_at_once() -> None:
    pool = Pool(1).settle()
    scaler = ExecutorScaler(pool, 1)
    scaler.aim(3)
    assert pool.asked == ["total 3"]
    assert scaler.report().model_dump() == {"target": 3, "registered": 1, "decommissioning": 0}
    pool.settle()
    assert scaler.report().registered == 3


def test_fewer_wait_for_the_end_of_the_batch_and_the_total_goes_first() -> None:
    pool = Pool(3).settle()
    scaler = ExecutorScaler(pool, 3)
    scaler.aim(1)
    assert pool.asked == []
    assert scaler.report().target == 3, "only what has been asked for is acknowledged"
    scaler.between_batches()
    assert pool.asked == ["total 1", "decommission [2, 3]"]
    assert scaler.report().model_dump() == {"target": 1, "registered": 1, "decommissioning": 2}
    pool.settle()
    scaler.between_batches()
    assert len(pool.asked) == 2
    assert len(pool.running) == 1


def test_an_executor_that_comes_up_after_the_target_was_lowered_goes_too() -> None:
    pool = Pool(1).settle()
    scaler = ExecutorScaler(pool, 1)
    scaler.aim(3)
    scaler.aim(1)
    scaler.between_batches()
    assert pool.asked == ["total 3", "total 1"]
    pool.running |= {7: Executor(7, 0, 0)}
    scaler.between_batches()
    assert pool.asked[2:] == ["decommission [7]"]


def test_the_same_target_again_asks_for_nothing() -> None:
    pool = Pool(2).settle()
    scaler = ExecutorScaler(pool, 2)
    for _ in range(3):
        scaler.aim(2)
        scaler.between_batches()
    assert pool.asked == []


def test_a_spark_that_does_not_answer_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool(1, broken=True)
    scaler = ExecutorScaler(pool, 1)
    scaler.aim(4)
    scaler.between_batches()
    assert "could not be brought to 4" in caplog.text
    assert scaler.report().model_dump() == {"target": 1, "registered": 0, "decommissioning": 0}
    pool.broken = False
    scaler.between_batches()
    assert pool.asked == ["total 4"]
