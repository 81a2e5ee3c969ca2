"""Prints what a run of CI took: a table of its steps, and the slowest tests of all of them.

    python3.11 .ci/report.py FOLDER

FOLDER/steps has a line for each step: its name, its seconds, and the seconds that it may take, separated by tabs; the
last is empty for what has no budget. FOLDER/<step>/ has the JUnit reports of the test runners that the step started.
FOLDER/paces has what `pace.py` said, a line for each time. Exits with 1 when a step took more than half as much again
as it may on a machine that is as slow as the slowest of them. Needs Python alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

SLACK = 1.5
"""What of its budget a step may take: machines are busy at times."""
SLOWEST = 10
MAX_PACE = 2.0
"""A machine that is slower still is told of, and not waited for."""


@dataclass(frozen=True)
class Case:
    name: str
    seconds: float


@dataclass(frozen=True)
class Step:
    name: str
    seconds: int
    budget: int | None
    tests: tuple[Case, ...] = ()

    def on(self, pace: float) -> Step:
        """The same with the budget that it has on a machine that takes `pace` times as long."""
        return replace(self, budget=self.budget and round(self.budget * pace))

    @property
    def is_over(self) -> bool:
        return self.budget is not None and self.seconds > SLACK * self.budget


def tests_of(junit: str) -> list[Case]:
    """The tests that ran, of a report in JUnit's XML."""
    cases = ElementTree.fromstring(junit).iter("testcase")
    return [
        Case(f"{case.get('classname')}::{case.get('name')}", float(case.get("time", 0)))
        for case in cases
        if case.find("skipped") is None
    ]


def steps_in(folder: Path) -> list[Step]:
    steps = []
    for line in (folder / "steps").read_text("utf-8").splitlines():
        name, seconds, budget = line.split("\t")
        tests = [test for path in sorted((folder / name).glob("*.xml")) for test in tests_of(path.read_text("utf-8"))]
        steps.append(Step(name, int(seconds), int(budget) if budget else None, tuple(tests)))
    return steps


def pace_in(folder: Path) -> float:
    """How many times as long the machine took as the one of the budgets, at its slowest: not less than 1, so that no
    budget gets shorter on a faster one."""
    said = [float(line) for line in (folder / "paces").read_text("utf-8").split()]
    return min(max(1.0, *said), MAX_PACE)


def table(steps: Sequence[Step]) -> str:
    rows = [("step", "seconds", "budget", "tests")]
    rows += [(step.name, str(step.seconds), str(step.budget or ""), str(len(step.tests) or "")) for step in steps]
    marks = ["", *("  over its budget" if step.is_over else "" for step in steps)]
    width = max(len(name) for name, *_ in rows)
    lines = [
        f"{name:<{width}}  {seconds:>7}  {budget:>6}  {tests:>5}{mark}".rstrip()
        for (name, seconds, budget, tests), mark in zip(rows, marks, strict=True)
    ]
    return "\n".join(lines)


def slowest(steps: Sequence[Step], count: int = SLOWEST) -> str:
    ran = sorted(((test.seconds, step.name, test.name) for step in steps for test in step.tests), reverse=True)
    return "\n".join(f"{seconds:7.1f}  {step}  {name}" for seconds, step, name in ran[:count])


def main(folder: Path) -> int:
    pace = pace_in(folder)
    steps = [step.on(pace) for step in steps_in(folder)]
    if pace > 1:
        sys.stdout.write(f"This machine is slow: the budgets are {pace:.2f} times those in `.ci/run`.\n\n")
    sys.stdout.write(f"{table(steps)}\n\nThe slowest tests, in seconds:\n{slowest(steps)}\n")
    over = [step.name for step in steps if step.is_over]
    if over:
        sys.stdout.write(f"\nMore than {SLACK} times its budget: {', '.join(over)}\n")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
