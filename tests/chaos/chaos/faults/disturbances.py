"""What happens around a driver that runs; most of it goes on until the driver's life has ended."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Self

from chaos.faults.base import Fault, Phase
from chaos.processes import Part
from chaos.registry import Trouble
from chaos.s3 import AWAITED, Effect, S3Fault
from chaos.setting import Place, Setting

if TYPE_CHECKING:
    from chaos.world import World

_READS = ("GetRecords", "GetShardIterator", "ListShards", "DescribeStreamSummary")


@dataclass(frozen=True)
class KinesisFails(Fault):
    """A share of the requests to Kinesis meet one of the local server's faults."""

    kind: str
    share: float
    times: int
    seconds: float
    """Of latency."""
    puts: bool
    """Whether the producer's requests are befallen as well."""

    phase = Phase.DURING
    weight = 5

    @classmethod
    def draw(cls, chance: Random) -> Self:
        kind = chance.choice(("latency", "internal_failure", "throttle", "drop", "drop_before", "empty_pages"))
        share, times = chance.choice((0.1, 0.4, 1.0)), chance.choice((3, 10, 30))
        return cls(kind, share, times, chance.choice((0.5, 3.0, 35.0)), chance.random() < 0.5)

    def strike(self, world: World) -> None:
        operations = (*_READS, "PutRecords") if self.puts else _READS
        faults = world.kinesis.faults
        world.stressed = True
        match self.kind:
            case "latency":
                # Longer than a client waits: the answer is never read.
                faults.latency(self.seconds, *_READS, times=3 if self.seconds > 10 else self.times)
            case "empty_pages":
                faults.empty_pages(times=self.times, probability=self.share)
            case "throttle":
                faults.throttle(*operations, times=self.times, probability=self.share)
            case "internal_failure":
                faults.internal_failure(*operations, times=self.times, probability=self.share)
            case "drop":
                faults.drop(*operations, times=self.times, probability=self.share)
            case _:
                faults.drop_before(*operations, times=self.times, probability=self.share)


@dataclass(frozen=True)
class Reshards(Fault):
    """A shard is split or two are merged, every few seconds."""

    seconds: float
    seed: int

    phase = Phase.DURING
    weight = 4

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return not setting.auto

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((2.0, 6.0)), chance.randrange(2**32))

    def strike(self, world: World) -> None:
        world.reshard(Random(self.seed), self.seconds)


@dataclass(frozen=True)
class ListingsStale(Fault):
    """While shards are split and merged, some listings are of a while ago, and a driver may end of each.

    Struck before its first batch, those of its start as well.
    """

    seconds: float
    """Ago."""
    share: float
    times: int
    seed: int

    phase = Phase.DURING
    weight = 3

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return not setting.auto

    @classmethod
    def draw(cls, chance: Random) -> Self:
        seconds = chance.choice((1.0, 4.0, 15.0, 60.0))
        return cls(seconds, chance.choice((0.3, 1.0)), chance.choice((1, 3, 10)), chance.randrange(2**32))

    def strike(self, world: World) -> None:
        world.stressed = True
        if world.driver is not None:
            # What it was told it may end of a little later.
            world.driver.hurt = True
        world.reshard(Random(self.seed), 2.0)
        world.kinesis.faults.stale(self.seconds, times=self.times, probability=self.share)


@dataclass(frozen=True)
class S3Fails(Fault):
    """Requests to S3 meet a fault."""

    effect: str
    target: str
    times: int
    share: float
    seconds: float

    phase = Phase.DURING
    weight = 14

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.place is Place.S3

    @classmethod
    def draw(cls, chance: Random) -> Self:
        effect = chance.choice(
            (Effect.REFUSE, Effect.CUT, Effect.LOSE_ANSWER, Effect.LOSE_ANSWER, Effect.DELAY, Effect.LATE)
        )
        targets = ("any", "write", "conditional put", "complete", "hudi commit", "timeline", "archived", "data")
        target = chance.choice(targets)
        seconds = chance.choice((0.5, 4.0, 20.0, 90.0) if effect is Effect.LATE else (0.2, 2.0, 40.0))
        times = 2 if seconds > 10 else chance.choice((1, 3, 10))
        return cls(effect.value, target, times, chance.choice((0.3, 1.0)), seconds)

    def strike(self, world: World) -> None:
        assert world.proxy is not None  # it suits S3 alone
        world.stressed = True
        world.proxy.faults.add(S3Fault(Effect(self.effect), self.target, self.times, self.share, self.seconds))


@dataclass(frozen=True)
class DeletingForbidden(Fault):
    """The driver's role may not delete from S3 any more: nothing is cleaned or expires, and batches go on.

    A table cannot be made so, nor go back, nor can a driver that starts undo what another one left: then the right
    comes after some requests, which drivers wait for.
    """

    phase = Phase.DURING
    weight = 3

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.place is Place.S3

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()

    def strike(self, world: World) -> None:
        assert world.proxy is not None  # it suits S3 alone
        works = world.driver is not None and world.driver.batches and not world.asked.restores
        world.proxy.faults.add(S3Fault(Effect.FORBID, "delete", times=None if works else AWAITED))


@dataclass(frozen=True)
class RegistryFails(Fault):
    """Requests for schemas are denied, fail, or are answered late: what is by these is not read yet, and waited for.

    A driver whose right is missing may end.
    """

    trouble: str
    times: int
    seconds: float
    """Of an answer that is late."""

    phase = Phase.DURING
    weight = 14

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.avro

    @classmethod
    def draw(cls, chance: Random) -> Self:
        trouble, seconds = chance.choice(list(Trouble)), chance.choice((0.5, 3.0, 25.0))
        # After each denial a driver begins anew.
        times = chance.choice((1, 2) if trouble is Trouble.DENY or seconds > 20 else (1, 3, 10))
        return cls(trouble.value, times, seconds)

    def strike(self, world: World) -> None:
        assert world.registry is not None  # it suits records of its schemas alone
        world.stressed = True
        world.registry.trouble(Trouble(self.trouble), self.times, self.seconds)


@dataclass(frozen=True)
class KinesisClockGoesOn(Fault):
    """Kinesis's clock goes forward at once: a pause in the stream, or the driver's clock is behind."""

    seconds: int

    phase = Phase.DURING

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((5, 301, 720, 5400)))

    def strike(self, world: World) -> None:
        world.kinesis_goes_on(self.seconds)


@dataclass(frozen=True)
class DriverClockSteps(Fault):
    """Somebody sets the clock of the driver's machine; set back, it may refuse to write and end."""

    seconds: int

    phase = Phase.DURING
    weight = 1

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((-720, -30, -2, 2, 30, 720)))

    def strike(self, world: World) -> None:
        if world.driver is not None:
            world.set_clock(world.driver, self.seconds)


@dataclass(frozen=True)
class Pause(Fault):
    """All processes of the driver stop for a while, and nobody takes over."""

    seconds: float

    phase = Phase.DURING
    group = "freezes"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((1.0, 5.0, 33.0)))

    def strike(self, world: World) -> None:
        driver = world.driver
        if driver is None:
            return
        # What it asks when it goes on may be too old.
        driver.hurt = True
        driver.freeze()
        time.sleep(self.seconds)
        driver.thaw()


@dataclass(frozen=True)
class WorkersDie(Fault):
    """Python workers are killed under the driver, which may end of it."""

    seconds: float

    phase = Phase.DURING
    group = "kills"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(round(chance.uniform(0, 1.0), 3))

    def strike(self, world: World) -> None:
        _kill_soon(world, Part.WORKERS, self.seconds)


@dataclass(frozen=True)
class ExecutorsDie(Fault):
    """The executors are killed under a driver that lives on."""

    seconds: float

    phase = Phase.DURING
    weight = 10
    group = "kills"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.cluster

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(round(chance.uniform(0, 2.0), 3))

    def strike(self, world: World) -> None:
        _kill_soon(world, Part.EXECUTORS, self.seconds)


def _kill_soon(world: World, part: Part, seconds: float) -> None:
    """Kill some processes of the driver that lives now, which may have ended by then."""
    if (driver := world.driver) is not None:
        time.sleep(seconds)
        driver.kill(part)


IN_PARTS = (40, 300_000)
"""Records and their size: files of a Hudi table outgrow the 5 MiB above which S3A writes in parts."""


@dataclass(frozen=True)
class Flood(Fault):
    """Many records at once, large ones among them: a batch that is written in parts."""

    records: int
    size: int

    phase = Phase.DURING

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(*chance.choice(((400, 100), IN_PARTS)))

    def strike(self, world: World) -> None:
        world.producer.flood(self.records, self.size)
