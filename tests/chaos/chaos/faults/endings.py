"""How a driver's life ends."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Self

from chaos.driver import FAILED, FENCED, STORAGE
from chaos.faults.base import Ending
from chaos.processes import Part

if TYPE_CHECKING:
    from chaos.driver import Driver
    from chaos.world import World

STEPS = ("planned", "half_read", "written", "sink_committed", "committed")
"""`LAKESTREAM_CRASH_AT`, as docs/exactly-once.md lists them."""
START_SECONDS = 240.0
"""For a start and a batch: a loaded machine with two cores takes a minute."""
END_SECONDS = 90.0
OWNS_THE_LOG = "lakestream.app: epoch "
AIM_SECONDS = 20.0
_SQL_FAILS = "An expression of SQL fails at a value of a record"


@dataclass(frozen=True)
class CrashAt(Ending):
    """It dies by itself at a step of a batch, and its JVM finds the pipe broken."""

    step: str
    time: int
    """Which time the step is fatal."""

    weight = 4
    group = "kills"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice(STEPS), chance.choice((1, 1, 2, 3)))

    @property
    def crash_at(self) -> str:
        return f"{self.step}:{self.time}"

    def end(self, world: World, driver: Driver) -> None:
        driver.hurt = True
        if driver.wait(START_SECONDS) is None:
            world.tell(f"{driver.name} has not come to {self.step}: calm")
            world.calm()
            if driver.wait(START_SECONDS) is None:
                world.faults.append(f"stuck: {driver.name} never came to {self.step}")
                driver.end()


@dataclass(frozen=True)
class Kill(Ending):
    """SIGKILL to some of its processes."""

    part: str
    seconds: float
    """From the batch before to the kill."""
    aimed: bool
    """Whether it waits for a Hudi commit to be under way first."""

    weight = 6
    group = "kills"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        part = chance.choice((Part.ALL, Part.ALL, Part.JVM, Part.PYTHON))
        return cls(part.name, round(chance.uniform(0, 2.0), 3), chance.random() < 0.5)

    def end(self, world: World, driver: Driver) -> None:
        if self.aimed:
            await_commit(world, driver)
        time.sleep(self.seconds / 4 if self.aimed else self.seconds)
        # A driver that has just been started has no JVM yet.
        driver.until(lambda: driver.kill(Part[self.part]), START_SECONDS)
        if (status := driver.wait(END_SECONDS)) is None:
            world.faults.append(
                f"stuck: {driver.name} did not end within {END_SECONDS:.0f} s of its {self.part}'s death"
            )
            driver.end()
        elif self.part == Part.JVM.name and status != FAILED:
            world.faults.append(f"{driver.name} ended with {status} instead of {FAILED} when its JVM was killed")


@dataclass(frozen=True)
class KillInRecovery(Ending):
    """SIGKILL to all of it soon after its takeover: what one driver left, several come to undo.

    One that has succeeded a frozen driver, or a rival, has done that already, and dies at an instant.
    """

    seconds: float
    """From the takeover to the kill; on a machine of its own a driver reads the stream after some six."""

    weight = 8
    group = "kills"
    is_early = True

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(round(chance.uniform(0, 8.0), 3))

    def end(self, world: World, driver: Driver) -> None:
        await_own_takeover(driver)
        status = driver.wait(self.seconds)
        if status is not None and not (status in (FAILED, STORAGE) and driver.hurt):
            world.faults.append(f"{driver.name} ended with {status} as it took over: {driver.last_word()}")
        driver.end()


@dataclass(frozen=True)
class Terminate(Ending):
    """SIGTERM: it ends the batch in hand, with status 0."""

    seconds: float
    whole_group: bool

    group = "terminations"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(round(chance.uniform(0, 2.0), 3), chance.random() < 0.5)

    def end(self, world: World, driver: Driver) -> None:
        time.sleep(self.seconds)
        was_hurt = driver.hurt or world.stressed
        world.calm()
        if self.whole_group:
            driver.signal(Part.PYTHON, signal.SIGTERM)
        else:
            driver.process.terminate()
        if (status := driver.wait(END_SECONDS)) is None:
            world.faults.append(f"stuck: {driver.name} did not end within {END_SECONDS:.0f} s of SIGTERM")
            driver.end()
        elif status == -signal.SIGTERM and not driver.last_word():
            world.tell(f"{driver.name} was not up yet: Python had no handler")
        elif status == FAILED and _SQL_FAILS in driver.last_word():
            world.tell(f"{driver.name} leaves the batch at whose records SQL fails to the next one")
        elif status != 0 and not was_hurt:
            world.faults.append(f"{driver.name} ended with {status} on SIGTERM: {driver.last_word()}")


@dataclass(frozen=True)
class Freeze(Ending):
    """All its processes stop, a successor starts and works, and then they go on."""

    seconds: float
    aimed: bool
    batches: int
    """Of the successor, before the frozen one goes on; 0: as soon as it has taken over."""

    weight = 4
    group = "freezes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(round(chance.uniform(0, 1.5), 3), chance.random() < 0.7, chance.choice((0, 1, 2)))

    def end(self, world: World, driver: Driver) -> None:
        await_own_takeover(driver)
        if self.aimed:
            await_commit(world, driver)
        time.sleep(self.seconds / 4 if self.aimed else self.seconds)
        driver.freeze()
        successor = world.start()
        successor.crosses = True
        await_takeover(world, successor, self.batches)
        world.tell(f"{driver.name} goes on")
        driver.thaw()
        require_gone(world, driver)


@dataclass(frozen=True)
class Rival(Ending):
    """A second driver is started beside it, which takes over."""

    seconds: float

    group = "rivals"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(round(chance.uniform(0, 2.0), 3))

    def end(self, world: World, driver: Driver) -> None:
        await_own_takeover(driver)
        time.sleep(self.seconds)
        rival = world.start()
        rival.crosses = True
        await_takeover(world, rival, 1)
        require_gone(world, driver)


def await_commit(world: World, driver: Driver) -> None:
    """Wait for a Hudi commit to be under way; if there is none, not for long."""
    if not world.setting.sink.is_hudi:
        return
    proxy, folder = world.proxy, Path(world.root) / "table" / ".hoodie"
    begun = _begun_in(folder) if proxy is None else lambda: set(proxy.faults.begun)
    before = begun()
    driver.until(lambda: bool(begun() - before), AIM_SECONDS)


def _begun_in(folder: Path) -> Callable[[], set[str]]:
    """Commits that have not ended."""
    instant = re.compile(r"(\d+)(_\d+)?\.(delta)?commit(?P<state>\.\w+)?")

    def under_way() -> set[str]:
        # Of version 9 the timeline is a folder of its own.
        found = [instant.fullmatch(file.name) for place in (folder, folder / "timeline") for file in place.glob("2*")]
        ended = {one[1] for one in found if one and not one["state"]}
        return {one[1] for one in found if one} - ended

    return under_way


def await_own_takeover(driver: Driver) -> None:
    """Wait until a driver has an epoch: one without would take a higher one than whoever is to succeed it."""
    driver.until(lambda: driver.has_logged(OWNS_THE_LOG), START_SECONDS)


def await_takeover(world: World, successor: Driver, batches: int, logged: str = OWNS_THE_LOG) -> None:
    """Wait until a driver has committed so many batches or, if none are asked for, has logged something."""
    if not successor.until(
        lambda: successor.batches >= batches if batches else successor.has_logged(logged), START_SECONDS
    ):
        if successor.status is None:
            world.faults.append(f"stuck: {successor.name} has not taken over within {START_SECONDS:.0f} s")
            successor.end()
        elif successor.status not in (FAILED, STORAGE):
            world.faults.append(f"{successor.name} ended with {successor.status}: {successor.last_word()}")


def require_gone(world: World, driver: Driver) -> None:
    """A driver with a successor has to end by itself."""
    driver.hurt = True
    status = driver.wait(END_SECONDS)
    if status is None:
        world.faults.append(f"{driver.name} was still there {END_SECONDS:.0f} s after its successor had taken over")
        driver.end()
    elif status not in (FENCED, FAILED, STORAGE):
        world.faults.append(f"{driver.name} ended with {status} when it was replaced: {driver.last_word()}")
