"""What somebody reads while drivers live and die."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Self

from chaos.faults.base import Fault, Phase

if TYPE_CHECKING:
    from chaos.world import World


@dataclass(frozen=True)
class TableRead(Fault):
    """The table is read while a driver writes it."""

    phase = Phase.DURING
    group = "readings"
    weight = 6

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()

    def strike(self, world: World) -> None:
        world.readings.take()


@dataclass(frozen=True)
class RemnantRead(TableRead):
    """The table is read as the driver before has left it."""

    phase = Phase.BEFORE

    @classmethod
    def draw(cls, chance: Random) -> Self:
        return cls()
