"""What can happen to a driver: the links of a chain. Each starts one, and says how it has to end."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from lab.driver import Driver, DriverError, Victim
from lab.lake import epochs_of
from lakestream.control.files import read_progress
from lakestream.faults import STEPS
from lakestream.log import FenceSettings
from lakestream.statuses import Exit

if TYPE_CHECKING:
    from lab.chain import Lab

VISIBLE = ("written", "sink_committed")
"""The steps at which it is up to the sink whether a batch is there; the others are the engine's and the log's."""
_TIMES = (1, 1, 2, 3)
"""Which time a step is fatal: the first is in the batch that the kill before left, more often than not."""
_DYING = FenceSettings().dying.total_seconds()
_ASKED_TO_END = "INFO lakestream.stopping: SIGTERM"


class Since(Enum):
    """What a driver is seen to do, by a line of its log; and for how many seconds after that it may be killed."""

    EPOCH = ("INFO lakestream.app: epoch ", 7.0)
    """Spark starts, and the sink undoes what the predecessor left."""
    READING = ("INFO lakestream.app: reading the stream ", 7.0)
    """The first batches, and the wait for a predecessor."""
    COMMIT = ("INFO lakestream.control.report: batch ", 3.0)
    """The batches after it: one is fetched while another one is written, and the table is compacted."""

    @property
    def line(self) -> str:
        return self.value[0]

    @property
    def seconds(self) -> float:
        return self.value[1]


@dataclass(frozen=True)
class AtStep:
    """Killed by itself, at a step."""

    step: str
    time: int

    def __str__(self) -> str:
        return f"killed at {self.step}, time {self.time}"

    def carry_out(self, lab: Lab) -> None:
        _require_status(lab.start(crash_at=f"{self.step}:{self.time}"), -signal.SIGKILL)


@dataclass(frozen=True)
class AtInstant:
    """Killed from outside, some time after it was seen to do something."""

    since: Since
    seconds: float
    victim: Victim

    def __str__(self) -> str:
        return f"{self.victim.value} killed {self.seconds:.2f} s after {self.since.name}"

    def carry_out(self, lab: Lab) -> None:
        driver = lab.start()
        driver.until_logged(self.since.line)
        time.sleep(self.seconds)
        driver.kill(self.victim)
        if self.victim is Victim.JVM:
            # It says so and ends: it can be started again.
            _require_status(driver, Exit.FAILED)
            if "\nlakestream: " not in driver.log.read_text():
                raise DriverError(f"{driver.name} does not say in a sentence why it ended\n{driver.tail()}")
        else:
            _require_status(driver, -signal.SIGKILL)


@dataclass(frozen=True)
class Terminated:
    """Ended by SIGTERM, after the batch in hand."""

    since: Since
    group: bool
    """Whether its process group gets the signal too, as from a terminal or a service manager."""

    def __str__(self) -> str:
        return f"SIGTERM to the {'group' if self.group else 'driver'} after {self.since.name}"

    def carry_out(self, lab: Lab) -> None:
        driver = lab.start()
        driver.until_logged(self.since.line)
        if self.group:
            os.killpg(driver.process.pid, signal.SIGTERM)
        else:
            driver.process.terminate()
        before = len(read_progress(driver.progress))
        _require_status(driver, 0)
        # The batch in hand; another one may have been committed between the signal and the look.
        after = len(read_progress(driver.progress))
        if after > before + 2 or (after and not driver.has_logged(Since.READING.line, _ASKED_TO_END)):
            raise DriverError(f"{driver.name} committed {after - before} batches after SIGTERM\n{driver.tail()}")
        with lab.writer.environment():
            epochs = epochs_of(lab.writer)
        # It has said that it writes no more, so its successor need not wait. Before it may write itself it cannot.
        if after and epochs[-1].replace(".json", ".closed.json") not in epochs:
            raise DriverError(f"{driver.name} did not close its epoch: {epochs}\n{driver.tail()}")


SIGTERM = Terminated(Since.COMMIT, group=False)
SIGTERM_FOR_ALL = Terminated(Since.COMMIT, group=True)
EARLY_SIGTERM = Terminated(Since.EPOCH, group=True)


@dataclass(frozen=True)
class Rivals:
    """Three drivers on one checkpoint, of which two have to stop."""

    def __str__(self) -> str:
        return "three drivers at once"

    def carry_out(self, lab: Lab) -> None:
        first = lab.start()
        first.until_logged(Since.COMMIT.line)
        # Both come while the first is in the middle of its work, and neither knows of the other.
        others = [lab.start(), lab.start()]
        _require_status(first, Exit.FENCED)
        first.require_no_jvm(_DYING)
        others[0].until(lambda: any(driver.process.poll() is not None for driver in others), "a winner", may_end=True)
        others.sort(key=lambda driver: driver.process.poll() is None)
        stopped, survivor = others
        _require_status(stopped, Exit.FENCED)
        if "has taken over" not in stopped.tail():
            raise DriverError(f"{stopped.name} does not say why it stopped\n{stopped.tail()}")
        survivor.until(lambda: Since.COMMIT.line in survivor.log.read_text(), "its first batch", may_end=True)
        survivor.process.terminate()
        # Just before it was fenced the other one may have planned a batch that this one could not know of.
        if survivor.wait() != Exit.FAILED or "Start this one again" not in survivor.tail():
            _require_status(survivor, 0)


Link: TypeAlias = AtStep | AtInstant | Terminated | Rivals


def plan_kills(seed: str, instants: int, steps: Sequence[str] = STEPS) -> tuple[Link, ...]:
    """Kills at the named steps, and at so many random instants, in a random order; the same for the same seed."""
    chance = random.Random(seed)
    kills: list[Link] = [AtStep(step, chance.choice(_TIMES)) for step in steps]
    for number in range(instants):
        # In turn, so that few instants still hit all of them.
        victim = list(Victim)[number % len(Victim)]
        since = chance.choice((Since.EPOCH, Since.READING, Since.READING, Since.COMMIT, Since.COMMIT))
        kills.append(AtInstant(since, chance.uniform(0, since.seconds), victim))
    chance.shuffle(kills)
    return tuple(kills)


def _require_status(driver: Driver, expected: int) -> None:
    if (status := driver.wait()) != expected:
        raise DriverError(f"{driver.name} ended with {status} instead of {expected}\n{driver.tail()}")
