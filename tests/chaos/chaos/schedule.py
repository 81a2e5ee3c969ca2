"""What happens in a scenario, and in which order: all of it follows from the seed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from chaos.faults import Ending, Fault, Phase, fault_from_json, fault_to_json, kinds
from chaos.setting import Place, Setting, Sink

LIVES = (3, 4)
"""Drivers of a scenario, at least and at most, but for the one that drains the stream."""
INDEXES = ("bucket", "simple", "bloom", "global_simple", "global_bloom")


@dataclass(frozen=True)
class Life:
    """The life of a driver."""

    before: tuple[Fault, ...]
    during: tuple[tuple[int, Fault], ...]
    """After so many batches of this life, in order."""
    batches: int
    """Before it ends."""
    ending: Ending


@dataclass(frozen=True)
class Scenario:
    """A writer, and what happens to its drivers, one after the other."""

    seed: str
    """Of this scenario: what the producer puts and where the schedule leaves something to chance follows from it."""
    setting: Setting
    lives: tuple[Life, ...]

    def to_json(self) -> dict[str, Any]:
        lives = [
            {
                "before": [fault_to_json(fault) for fault in life.before],
                "during": [{"after": after, **fault_to_json(fault)} for after, fault in life.during],
                "batches": life.batches,
                "ending": fault_to_json(life.ending),
            }
            for life in self.lives
        ]
        return {"seed": self.seed, "setting": asdict(self.setting), "lives": lives}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Scenario:
        """Read a schedule again, also one of an older table of faults, as long as its faults are still there."""
        setting = fields["setting"]
        made = Setting(**{**setting, "sink": Sink(setting["sink"]), "place": Place(setting["place"])})
        return cls(fields["seed"], made, tuple(_life(life) for life in fields["lives"]))


def draw_scenario(seed: str, number: int, *, lives: int | None = None, volume: int = 1) -> Scenario:
    """The scenario of that number; the same for the same seed.

    Args:
        seed: any text.
        number: of the scenario.
        lives: drivers, instead of as many as chance has it.
        volume: bursts of records at a time; more than one come to a stream of four times the shards.
    """
    own = f"{seed}/{number}"
    chance = Random(own)
    sinks = list(Sink)
    setting = Setting(
        # In turn, so that few scenarios still meet all of them.
        sink=sinks[(number + sum(map(ord, seed))) % len(sinks)],
        place=chance.choices(list(Place), (5, 4))[0],
        cluster=chance.random() < 0.12,
        shards=chance.choice((1, 2, 3)) * (1 if volume == 1 else 4),
        burst=chance.choice((20, 60, 200)),
        auto=chance.random() < 0.12,
        volume=volume,
        # By a chance of their own: a seed means otherwise what it meant.
        sql=Random(f"{own}, SQL").random() < 0.15,
        joins=Random(f"{own}, join").random() < 0.5,
        index=Random(f"{own}, index").choices(INDEXES, (6, 1, 1, 1, 1))[0],
        version=Random(f"{own}, version").choices((6, 9), (2, 1))[0],
        pushed=Random(f"{own}, pushed").random() < 0.25,
        packed=(form := Random(f"{own}, packed").random()) < 0.2,
        avro=form > 0.85,
    )
    drawn = chance.randint(*LIVES)
    return Scenario(own, setting, tuple(_draw_life(chance, setting) for _ in range(lives or drawn)))


def _draw_life(chance: Random, setting: Setting) -> Life:
    before = _draw(chance, setting, Phase.BEFORE, chance.choice((0, 1, 1, 2)))
    during = _draw(chance, setting, Phase.DURING, chance.choice((1, 2, 3)))
    batches = chance.choice((0, 1, 2, 4))
    timed = sorted(((chance.randint(0, batches), fault) for fault in during), key=lambda pair: pair[0])
    (ending,) = _draw(chance, setting, Phase.ENDING, 1)
    assert isinstance(ending, Ending)
    if ending.is_early:
        return Life(before, (), 0, ending)
    return Life(before, tuple(timed), batches, ending)


def _draw(chance: Random, setting: Setting, phase: Phase, number: int) -> tuple[Fault, ...]:
    candidates = kinds(phase, setting)
    return tuple(chance.choice(candidates).draw(chance) for _ in range(number))


def _life(fields: Mapping[str, Any]) -> Life:
    during = []
    for event in fields["during"]:
        rest = {name: value for name, value in event.items() if name != "after"}
        during.append((event["after"], fault_from_json(rest)))
    ending = fault_from_json(fields["ending"])
    assert isinstance(ending, Ending)
    before = tuple(fault_from_json(fault) for fault in fields["before"])
    return Life(before, tuple(during), fields["batches"], ending)
