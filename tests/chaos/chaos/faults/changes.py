"""What people change between the end of a driver and the start of the next one."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Self

from chaos.events import RELAXED_SCHEMA
from chaos.faults.base import Fault, Phase
from chaos.setting import Setting

if TYPE_CHECKING:
    from chaos.world import World


@dataclass(frozen=True)
class SchemaRelaxed(Fault):
    """Records that were not usable are from now on, and a field gets a column.

    What a span brings again would be a row now, and in quarantine from before: schemas stay where one was asked for.
    """

    phase = Phase.BEFORE
    group = "changes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()

    def strike(self, world: World) -> None:
        if world.asked.readings == 1:
            world.document["spec"]["schema"] = RELAXED_SCHEMA


@dataclass(frozen=True)
class RetentionChanged(Fault):
    """The stream keeps its records for longer or, later, as long as before."""

    hours: int

    phase = Phase.BEFORE
    group = "changes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((36, 48, 168)))

    def strike(self, world: World) -> None:
        world.keep_for(self.hours)


@dataclass(frozen=True)
class BatchesResized(Fault):
    """A batch takes fewer records, or more."""

    records: int

    phase = Phase.BEFORE
    group = "changes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((20, 200, 5000)))

    def strike(self, world: World) -> None:
        world.document["spec"]["trigger"]["maxRecordsPerBatch"] = self.records


@dataclass(frozen=True)
class FilesServed(Fault):
    """Executors ask the driver which files there are, as the option of Hudi has it, or look for themselves again."""

    served: bool

    phase = Phase.BEFORE
    group = "changes"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.sink.is_hudi

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.random() < 0.7)

    def strike(self, world: World) -> None:
        [writer] = world.document["spec"]["writers"]
        writer["hudi"].setdefault("options", {})["hoodie.embed.timeline.server"] = str(self.served).lower()


@dataclass(frozen=True)
class ClockWrong(Fault):
    """Drivers that start from now on are on a machine with another clock."""

    seconds: int

    phase = Phase.BEFORE
    weight = 1
    group = "changes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((-720, -5, 0, 5, 720, 1440)))

    def strike(self, world: World) -> None:
        world.clock_offset = self.seconds


@dataclass(frozen=True)
class Silence(Fault):
    """Some hours go by without a driver."""

    hours: int

    phase = Phase.BEFORE
    weight = 1
    group = "changes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((1, 3)))

    def strike(self, world: World) -> None:
        world.kinesis_goes_on(3600 * self.hours)


@dataclass(frozen=True)
class Trimmed(Fault):
    """Nobody reads for longer than the stream keeps its records, and what is gone may be skipped.

    Of keyed tables it would be open which version of a row is the newest that was read.
    """

    phase = Phase.BEFORE
    weight = 1
    group = "losses"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return not setting.sink.is_keyed

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()

    def strike(self, world: World) -> None:
        world.document["spec"]["source"]["kinesis"]["onDataLoss"] = "skip"
        if world.driver is not None:
            # A successor that lives on was started to fail at a loss.
            world.driver.end()
        world.trim()


@dataclass(frozen=True)
class HoursLater(Fault):
    """Drivers start two hours later, by the clock of their machine: what was replaced before is cleaned.

    Keyed tables would forget deletes by that clock, and take late versions that the producer still has.
    """

    phase = Phase.BEFORE
    weight = 1
    group = "changes"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.sink.is_hudi and not setting.sink.is_keyed

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()

    def strike(self, world: World) -> None:
        world.clock_offset = world.clock_ahead + 7200
