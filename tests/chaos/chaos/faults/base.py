"""What a fault is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Self

from chaos.setting import Setting

if TYPE_CHECKING:
    from chaos.driver import Driver
    from chaos.world import World


class Phase(Enum):
    """When in the life of a driver a fault strikes."""

    BEFORE = "before"
    """No driver runs, unless one was left running."""
    DURING = "during"
    ENDING = "ending"


FAULTS: dict[str, type[Fault]] = {}
"""By name; a class with a phase is in it as soon as it is defined."""


@dataclass(frozen=True)
class Fault(ABC):
    """One thing that happens. Its fields are numbers and texts, so that a schedule can be written down."""

    phase: ClassVar[Phase]
    weight: ClassVar[int] = 2
    """How often it is drawn, beside the others of its phase."""
    landed: ClassVar[bool] = True
    """Whether the product withstands it: no schedule draws what has not landed, but one that is written down has it."""
    group: ClassVar[str] = "faults"
    """What it counts as in the figures."""

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "phase") and "draw" in cls.__dict__:
            FAULTS[cls.__name__] = cls

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        """Whether it can happen there."""
        return True

    @classmethod
    @abstractmethod
    def draw(cls, chance: Random) -> Self:
        """One of its kind."""

    @abstractmethod
    def strike(self, world: World) -> None:
        """Let it happen. The newest driver is the one that it happens to."""


@dataclass(frozen=True)
class Ending(Fault):
    """A fault that a driver's life ends with; another one may live on afterwards."""

    phase = Phase.ENDING
    is_early: ClassVar[bool] = False
    """Whether it waits for no batch, so that nothing else happens to this driver."""

    @property
    def crash_at(self) -> str | None:
        """The step that the driver has to be started with to die there."""
        return None

    def strike(self, world: World) -> None:
        driver = world.driver
        if driver is not None:
            self.end(world, driver)

    @abstractmethod
    def end(self, world: World, driver: Driver) -> None:
        """End a living driver."""


def kinds(phase: Phase, setting: Setting) -> list[type[Fault]]:
    """Those that can happen, each as often as it weighs."""
    suiting = (kind for kind in FAULTS.values() if kind.phase is phase and kind.landed and kind.suits(setting))
    return [kind for kind in suiting for _ in range(kind.weight)]


def fault_to_json(fault: Fault) -> dict[str, Any]:
    return {"fault": type(fault).__name__, **asdict(fault)}


def fault_from_json(fields: Mapping[str, Any]) -> Fault:
    """Raises KeyError if there is no such fault (any more)."""
    return FAULTS[fields["fault"]](**{name: value for name, value in fields.items() if name != "fault"})
