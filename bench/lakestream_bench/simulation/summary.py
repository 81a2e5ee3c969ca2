"""Results side by side: who was late, who paid, and whether the goals are met."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakestream_bench.simulation.policies import FlinkOperator, LakeStream, ManagedFlink
from lakestream_bench.simulation.run import BOUND, Result

RESTARTING = (FlinkOperator.name, ManagedFlink.name)
LATE_SHARE = 1 / 3
"""Of the late seconds of a rival that restarts."""
LATE_SECONDS = 60.0
"""At most, where the bound is not late."""
ALIKE = 0.99
"""Share of our executors from which on a rival pays as much."""
COST_RATIO = 1.25
MEAN_COST_RATIO = 1.15
STEADY_ACTIONS = 1.0
"""Per hour, where the load has no trend."""
STEADY = ("constant", "noisy", "uneven")


@dataclass(frozen=True, slots=True)
class Range:
    """A figure over the seeds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Range:
        found = sorted(values)
        return cls(statistics.median(found), found[0], found[-1])

    def text(self, form: str) -> str:
        """The median, and the range behind it where there is one."""
        median, low, high = (format(value, form) for value in (self.median, self.low, self.high))
        return median if low == high else f"{median} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class Runs:
    """One policy in one scenario of one size, with several seeds."""

    policy: str
    results: tuple[Result, ...]
    cost: Range | None
    """Executor-seconds through the bound's."""

    @property
    def late(self) -> Range:
        return Range.of(result.late_seconds for result in self.results)

    @property
    def actions(self) -> Range:
        """Per hour."""
        return Range.of(result.actions_per_hour for result in self.results)

    @property
    def flaps(self) -> Range:
        return Range.of(float(result.flaps) for result in self.results)

    @property
    def executor_seconds(self) -> float:
        return statistics.median(result.executor_seconds for result in self.results)


@dataclass(frozen=True, slots=True)
class Case:
    """All policies in one scenario of one size."""

    scenario: str
    shards: int
    results: tuple[Result, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """Those that ran, and the bound."""
        return tuple(dict.fromkeys(result.policy for result in self.results))

    def of(self, policy: str) -> Runs | None:
        """What a policy came to; None: it did not run."""
        found = tuple(result for result in self.results if result.policy == policy)
        bounds = {result.seed: result.executor_seconds for result in self.results if result.policy == BOUND}
        ratios = [result.executor_seconds / bounds[result.seed] for result in found if result.seed in bounds]
        return Runs(policy, found, Range.of(ratios) if ratios else None) if found else None

    @property
    def ours(self) -> Runs | None:
        return self.of(LakeStream.name)

    @property
    def can_be_kept(self) -> bool:
        """Whether anybody can keep the lag goal, as far as the bound tells."""
        bound = self.of(BOUND)
        return bound is not None and bound.late.high == 0

    def rivals(self) -> list[Runs]:
        names = [name for name in self.policies if name not in (LakeStream.name, BOUND)]
        return [runs for name in names if (runs := self.of(name)) is not None]

    def verdicts(self) -> list[str]:
        """Where a goal is missed or a rival does better, in words and by medians; empty: all is as it should be."""
        ours = self.ours
        if ours is None:
            return []
        found = []
        if self.can_be_kept and ours.cost is not None and ours.cost.median > COST_RATIO:
            found.append(f"executor-seconds are {ours.cost.median:.2f} × the bound's, the goal is {COST_RATIO}")
        if self.can_be_kept and ours.late.median > LATE_SECONDS:
            found.append(
                f"late for {ours.late.median:,.0f} s, where the bound is not; the goal is {LATE_SECONDS:.0f} s"
            )
        if ours.flaps.median:
            found.append(f"{ours.flaps.median:.0f} changes taken back within ten minutes, though the load was not")
        if self.scenario in STEADY and ours.actions.median > STEADY_ACTIONS:
            found.append(f"{ours.actions.median:.1f} actions per hour at a load without a trend")
        found += [text for rival in self.rivals() if (text := self._beside(ours, rival))]
        return found

    def _beside(self, ours: Runs, rival: Runs) -> str:
        """What a rival does better; empty: nothing."""
        late, price = rival.late.median, rival.executor_seconds / ours.executor_seconds
        told = f"late for {late:,.0f} s, at {price:.2f} × our executors"
        if late <= ours.late.median and price <= 1 and (late + 1 < ours.late.median or price < ALIKE):
            return f"{rival.policy} does better: {told}"
        if rival.policy in RESTARTING and self.can_be_kept and ours.late.median > max(LATE_SHARE * late, 1.0):
            return f"{rival.policy} is late by less than three times ours: {told}"
        return ""


def cases(results: Iterable[Result]) -> list[Case]:
    """The results by scenario and size, in their order."""
    found: dict[tuple[str, int], list[Result]] = {}
    for result in results:
        found.setdefault((result.scenario, result.shards), []).append(result)
    return [Case(scenario, shards, tuple(rows)) for (scenario, shards), rows in found.items()]


def missed(found: Sequence[Case]) -> list[str]:
    """Where a goal is missed or a rival does better, over all cases and in each; empty: all is as it should be."""
    said = [f"{case.scenario}, {case.shards:,} shards: {text}" for case in found for text in case.verdicts()]
    cost = next((line.cost for line in totals(found) if line.policy == LakeStream.name), None)
    if cost is not None and cost > MEAN_COST_RATIO:
        said.append(f"executor-seconds are {cost:.2f} × the bound's in the mean, the goal is {MEAN_COST_RATIO}")
    return said


@dataclass(frozen=True, slots=True)
class Total:
    """A policy over all cases."""

    policy: str
    late_seconds: float
    """Sum of the medians, where the goal can be kept."""
    cost: float | None
    """Mean over these cases of executor-seconds through the bound's."""
    actions_per_hour: float
    """Mean over all cases."""


def totals(found: Sequence[Case]) -> list[Total]:
    """One line per policy. Costs are means of ratios: large streams count no more than small ones."""
    lines = []
    for policy in dict.fromkeys(name for case in found for name in case.policies if name != BOUND):
        runs = [(case, one) for case in found if (one := case.of(policy)) is not None]
        kept = [one for case, one in runs if case.can_be_kept]
        costs = [one.cost.median for one in kept if one.cost is not None]
        lines.append(
            Total(
                policy,
                sum(one.late.median for one in kept),
                statistics.mean(costs) if costs else None,
                statistics.mean(one.actions.median for _, one in runs),
            )
        )
    return lines
