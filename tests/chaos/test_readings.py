"""Readings of a table that hudi-rs does not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos import readings
from chaos.commands import Answer
from chaos.readings import Readings

PENDING = Answer(1, "a compaction of the table is under way. Ask again, or with --engine spark")


@dataclass
class World:
    """One without drivers."""

    folder: Path
    stressed: bool = False
    drivers: tuple[()] = ()
    asked: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(restores=0))
    faults: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def tell(self, what: str) -> None:
        self.told.append(what)


@pytest.mark.parametrize(
    ("stressed", "by_spark", "taken", "faults"),
    [
        (False, Answer(0, "2 rows of t, as of 20261129015014055 (…)"), ["20261129015014055"], []),
        (False, Answer(6, "it does not answer"), [], ["the table could not be read: it does not answer"]),
        (True, None, [], []),
    ],
)
def test_what_hudi_rs_does_not_read_is_read_by_spark(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stressed: bool,
    by_spark: Answer | None,
    taken: list[str],
    faults: list[str],
) -> None:
    answers = {"native": PENDING, "spark": by_spark}
    asked: list[tuple[str, str]] = []

    def call(_: World, name: str, arguments: tuple[str, ...], output: Path) -> Answer | None:
        options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
        asked.append((options["--engine"], "`at`" if "`at`" in options["--sql"] else '"at"'))
        return answers[options["--engine"]]

    monkeypatch.setattr(readings, "call", call)
    world = World(tmp_path, stressed)
    read = Readings(world)  # type: ignore[arg-type]
    read.take()
    assert asked == [("native", '"at"'), ("spark", "`at`")][: 1 if stressed else 2]
    assert [one.as_of for one in read.taken] == taken
    assert world.faults == faults
