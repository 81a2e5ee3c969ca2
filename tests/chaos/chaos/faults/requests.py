"""What people ask of a writer while its drivers live and die."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Self

from chaos.faults.base import Fault, Phase
from chaos.setting import Setting

if TYPE_CHECKING:
    from chaos.world import World


@dataclass(frozen=True)
class SpanAsked(Fault):
    """All that arrived since the stream began, or the later part of it, is read once more beside the stream.

    To a table that keeps every row there would be nothing to read: all of it is there.
    """

    percent: int
    """Of the stream's life so far that is not read again."""

    phase = Phase.DURING
    group = "requests"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.sink.is_keyed

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((0, 0, 50, 90)))

    def strike(self, world: World) -> None:
        world.asked.span(self.percent / 100)


@dataclass(frozen=True)
class ReplayAsked(Fault):
    """The schema is mended, as by `SchemaRelaxed`, and what is in quarantine read once more; by a driver that is
    started with it, which takes what those before it have rejected."""

    phase = Phase.DURING
    group = "requests"

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()

    def strike(self, world: World) -> None:
        world.asked.replay()


@dataclass(frozen=True)
class RestoreAsked(Fault):
    """The table goes back to what it was, and what came since is read again from the stream."""

    percent: int
    """Of its batches so far that are undone."""

    phase = Phase.DURING
    group = "requests"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.sink.is_hudi

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.choice((5, 20, 50, 80)))

    def strike(self, world: World) -> None:
        world.asked.restore(self.percent / 100)


@dataclass(frozen=True)
class FileAsked(Fault):
    """A file of events is taken beside the stream."""

    seed: int
    events: int
    suffix: str

    phase = Phase.DURING
    group = "requests"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return not setting.avro  # whose files have no frames

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls(chance.randrange(2**32), chance.choice((1, 30, 1000)), chance.choice((".jsonl", ".jsonl.gz")))

    def strike(self, world: World) -> None:
        world.asked.file(Random(self.seed), self.events, self.suffix)
