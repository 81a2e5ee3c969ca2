"""Which plans are carried out by which definition, and in what order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from lakestream.engine import Until
from lakestream.errors import (
    FencedError,
    LakeStreamError,
    QuarantineLimitError,
    RegistryDeniedError,
    RegistryUnavailableError,
    SchemaError,
    SinkError,
)
from lakestream.model import RULES, BatchPlan, Definition, RecordFormat, Restore
from lakestream.replay import NoRestores, carry_out, earlier
from lakestream.testing.logs import plan_of

OLD = Definition("id string NOT NULL", None, "op = 'd'")
OLDER = replace(OLD, transform="SELECT id FROM events")
PRESENT = replace(OLD, schema="id string")


def planned(*definitions: Definition | None) -> tuple[BatchPlan, ...]:
    return tuple(replace(plan_of(batch, 1), definition=own) for batch, own in enumerate(definitions, start=7))


@pytest.mark.parametrize(
    ("pending", "expected"),
    [
        ((), []),
        ((PRESENT, PRESENT), []),
        # Of a release that kept none: what the document says, as that release did.
        ((None, PRESENT), []),
        ((OLD,), [(OLD, [7])]),
        ((OLD, OLD), [(OLD, [7, 8])]),
        ((OLD, PRESENT), [(OLD, [7])]),
        ((OLD, None), [(OLD, [7])]),
        ((OLDER, OLD), [(OLDER, [7]), (OLD, [8])]),
        # The edit was taken back: its batch is finished all the same, in its turn.
        ((PRESENT, OLD), [(PRESENT, [7]), (OLD, [8])]),
    ],
)
def test_plans_of_other_definitions_go_first(
    pending: tuple[Definition | None, ...], expected: list[tuple[Definition, list[int]]]
) -> None:
    found = earlier(planned(*pending), PRESENT)
    assert [(own, [plan.batch for plan in plans]) for own, plans in found] == expected


def test_plans_of_a_release_that_kept_no_compression_go_by_the_documents() -> None:
    present = replace(PRESENT, compression="zstd")
    assert earlier(planned(PRESENT), present) == []
    assert earlier(planned(OLD, PRESENT), present)[0][0] == replace(OLD, compression="zstd")
    assert earlier(planned(replace(PRESENT, compression="gzip")), present) != []


@dataclass
class Engines:
    """Tells what was run by which definition; some fail."""

    fails: dict[Definition, LakeStreamError] = field(default_factory=dict)
    refuses: dict[Definition, LakeStreamError] = field(default_factory=dict)
    story: list[object] = field(default_factory=list)

    @contextmanager
    def open(self, definition: Definition) -> Iterator[Run]:
        if definition in self.refuses:
            raise self.refuses[definition]
        self.story.append(("open", definition))
        yield Run(self, definition)
        self.story.append("close")


@dataclass
class Run:
    engines: Engines
    definition: Definition

    def run(self, until: Until, yields: Callable[[], bool]) -> int:
        self.engines.story.append(until)
        return 10

    def replay(self, plans: Sequence[BatchPlan]) -> int:
        if self.definition in self.engines.fails:
            raise self.engines.fails[self.definition]
        self.engines.story.append([plan.batch for plan in plans])
        return len(plans)


def test_each_definition_is_opened_once_the_one_before_is_closed() -> None:
    engines = Engines()
    assert carry_out(planned(OLDER, OLD), PRESENT, engines.open, Until.CAUGHT_UP, NoRestores()) == 12
    first, second = [("open", OLDER), [7], "close"], [("open", OLD), [8], "close"]
    assert engines.story == [*first, *second, ("open", PRESENT), Until.CAUGHT_UP, "close"]


@pytest.mark.parametrize("error", [SinkError("row 5"), SchemaError("no uuid"), QuarantineLimitError("all of them")])
@pytest.mark.parametrize("early", [True, False])
def test_what_cannot_be_written_as_it_was_begun_is_left_to_the_document(
    error: LakeStreamError, early: bool, caplog: pytest.LogCaptureFixture
) -> None:
    engines = Engines(refuses={OLDER: error}) if early else Engines(fails={OLDER: error})
    with caplog.at_level(logging.WARNING):
        assert carry_out(planned(OLDER, OLD), PRESENT, engines.open, Until.STOPPED, NoRestores()) == 10
    # Nor is the one behind it written by a definition older than the one before.
    assert engines.story[-3:] == [("open", PRESENT), Until.STOPPED, "close"]
    assert ("open", OLD) not in engines.story
    assert "batches from 7 on cannot be written as they were begun, and are written anew" in caplog.text
    assert f"(changed: spec.schema, spec.transform): {error}" in caplog.text


@pytest.mark.parametrize("error", [RegistryDeniedError("not you"), RegistryUnavailableError("no route")])
def test_who_asks_no_registry_waits_for_none(error: LakeStreamError) -> None:
    """`format: avro` was a mistake, and was taken back: no edit would help otherwise."""
    in_avro = replace(PRESENT, record_format=RecordFormat.AVRO)
    engines = Engines(fails={in_avro: error})
    assert carry_out(planned(in_avro), PRESENT, engines.open, Until.STOPPED, NoRestores()) == 10
    with pytest.raises(type(error)):
        carry_out(planned(in_avro), replace(in_avro, schema="id long"), engines.open, Until.STOPPED, NoRestores())


@dataclass
class Wanted:
    """Restores that are wanted while engines run: so many times."""

    story: list[object]
    times: int

    def look(self) -> None:
        self.story.append("look")

    def is_wanted(self) -> bool:
        return self.times > 0

    def carry_out(self) -> int:
        self.story.append("restore")
        self.times -= 1
        return 1


def test_a_table_is_taken_back_while_no_engine_is_open() -> None:
    engines = Engines()
    restores = Wanted(engines.story, 2)
    done = carry_out(planned(OLD), PRESENT, engines.open, Until.STOPPED, restores)
    present = [("open", PRESENT), Until.STOPPED, "close"]
    assert engines.story == [("open", OLD), [7], "close", "look", *(["restore", *present] * 2)]
    assert done == 1 + 2 + 2 * 10


def test_the_plan_of_a_restore_is_no_batch_of_an_engine() -> None:
    engines = Engines()
    pending = (replace(planned(OLD)[0], restore=Restore(1, "2026", 3, True)),)
    carry_out(pending, PRESENT, engines.open, Until.STOPPED, Wanted(engines.story, 1))
    assert engines.story == ["look", "restore", ("open", PRESENT), Until.STOPPED, "close"]


def test_other_errors_end_the_run() -> None:
    engines = Engines(fails={OLD: FencedError("superseded")})
    with pytest.raises(FencedError):
        carry_out(planned(OLD), PRESENT, engines.open, Until.STOPPED, NoRestores())
    assert engines.story == [("open", OLD)]


def test_rules_of_another_release_are_told(caplog: pytest.LogCaptureFixture) -> None:
    before = replace(PRESENT, rules=RULES + 1)
    carry_out(planned(before), PRESENT, Engines().open, Until.STOPPED, NoRestores())
    assert f"makes rows by rules {RULES + 1}; this one has rules {RULES}" in caplog.text
