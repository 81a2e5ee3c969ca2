"""Results side by side: who was late, who paid, and whether the goals are met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakestream_bench.simulation.policies import LakeStream, Oracle
from lakestream_bench.simulation.run import Result

LATE_SHARE = 1 / 3
"""Of a rival's seconds over the lag goal."""
ORACLE_RATIO = 1.25
NOISY_ACTIONS = 1.0
"""Per hour, where the load has no trend."""
STEADY = ("constant", "noisy")


@dataclass(frozen=True, slots=True)
class Case:
    """All policies in one scenario of one size."""

    scenario: str
    shards: int
    results: tuple[Result, ...]

    def of(self, policy: str) -> Result | None:
        return next((result for result in self.results if result.policy == policy), None)

    @property
    def ours(self) -> Result | None:
        return self.of(LakeStream.name)

    def cost(self, result: Result) -> float | None:
        """Executor-seconds through the oracle's."""
        oracle = self.of(Oracle.name)
        return None if oracle is None else result.executor_seconds / oracle.executor_seconds

    def rivals(self) -> list[Result]:
        return [result for result in self.results if result.policy not in (LakeStream.name, Oracle.name)]

    def verdicts(self) -> list[str]:
        """Where a goal is missed or a rival does better, in words; empty: all is as it should be."""
        ours = self.ours
        if ours is None:
            return []
        found = []
        cost = self.cost(ours)
        if cost is not None and cost > ORACLE_RATIO:
            found.append(f"executor-seconds are {cost:.2f} × the oracle's, the goal is {ORACLE_RATIO}")
        if self.scenario in STEADY and ours.actions_per_hour > NOISY_ACTIONS:
            found.append(f"{ours.actions_per_hour:.1f} actions per hour at a load without a trend")
        for rival in self.rivals():
            if ours.late_seconds > LATE_SHARE * rival.late_seconds + 1:
                verb = (
                    "wins on lag" if rival.late_seconds < ours.late_seconds else "is late by less than three times ours"
                )
                price = rival.executor_seconds / ours.executor_seconds
                found.append(f"{rival.policy} {verb}: {rival.late_seconds:,.0f} s, at {price:.2f} × our executors")
            if rival.executor_seconds < ours.executor_seconds:
                share = 1 - rival.executor_seconds / ours.executor_seconds
                found.append(f"{rival.policy} pays {share:.0%} less, and is late for {rival.late_seconds:,.0f} s")
        return found


def cases(results: Iterable[Result]) -> list[Case]:
    """The results by scenario and size, in their order."""
    found: dict[tuple[str, int], list[Result]] = {}
    for result in results:
        found.setdefault((result.scenario, result.shards), []).append(result)
    return [Case(scenario, shards, tuple(rows)) for (scenario, shards), rows in found.items()]


@dataclass(frozen=True, slots=True)
class Total:
    """A policy over all cases."""

    policy: str
    late_seconds: float
    cost: float | None
    """Mean over the cases of executor-seconds through the oracle's."""
    actions_per_hour: float


def totals(found: Sequence[Case]) -> list[Total]:
    """One line per policy. Costs are means of ratios: large streams count no more than small ones."""
    policies = dict.fromkeys(result.policy for case in found for result in case.results)
    lines = []
    for policy in policies:
        results = [(case, result) for case in found if (result := case.of(policy)) is not None]
        costs = [cost for case, result in results if (cost := case.cost(result)) is not None]
        lines.append(
            Total(
                policy,
                sum(result.late_seconds for _, result in results),
                sum(costs) / len(costs) if costs else None,
                sum(result.actions for _, result in results) / sum(result.hours for _, result in results),
            )
        )
    return lines
