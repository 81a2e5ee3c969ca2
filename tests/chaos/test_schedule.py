"""A schedule follows from its seed, and comes back from what was written down of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from chaos.events import LATEST, Events, Sent
from chaos.faults import FAULTS, Phase, fault_from_json, fault_to_json, kinds
from chaos.poison import POISON, landed, poison
from chaos.schedule import INDEXES, LIVES, Scenario, draw_scenario
from chaos.setting import Place, Setting, Sink

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SCENARIOS = [draw_scenario("seed", number) for number in range(200)]


def test_the_same_seed_is_the_same_schedule() -> None:
    assert [draw_scenario("seed", number) for number in range(200)] == SCENARIOS
    assert [draw_scenario("another", number).lives for number in range(200)] != [s.lives for s in SCENARIOS]


def test_a_schedule_comes_back_from_its_json() -> None:
    for scenario in SCENARIOS:
        assert Scenario.from_json(json.loads(json.dumps(scenario.to_json()))) == scenario


def test_longer_and_larger_scenarios_come_back_too_and_are_on_the_same_settings() -> None:
    for number in range(20):
        scenario = draw_scenario("seed", number, lives=9, volume=30)
        assert Scenario.from_json(json.loads(json.dumps(scenario.to_json()))) == scenario
        assert len(scenario.lives) == 9
        shards = SCENARIOS[number].setting.shards
        assert scenario.setting == replace(SCENARIOS[number].setting, volume=30, shards=4 * shards)


def test_a_few_scenarios_meet_every_sink_and_many_every_fault() -> None:
    assert {scenario.setting.sink for scenario in SCENARIOS[: len(Sink)]} == set(Sink)
    assert {scenario.setting.place for scenario in SCENARIOS} == set(Place)
    lives = [life for scenario in SCENARIOS for life in scenario.lives]
    drawn = {type(fault).__name__ for life in lives for fault in life.before}
    drawn |= {type(fault).__name__ for life in lives for _, fault in life.during}
    drawn |= {type(life.ending).__name__ for life in lives}
    assert drawn == {name for name, kind in FAULTS.items() if kind.landed}


def test_faults_come_where_they_can_and_in_their_order() -> None:
    for scenario in SCENARIOS:
        assert LIVES[0] <= len(scenario.lives) <= LIVES[1]
        for life in scenario.lives:
            faults = (*life.before, *(fault for _, fault in life.during), life.ending)
            assert all(fault.suits(scenario.setting) for fault in faults)
            assert [fault.phase for fault in life.before] == [Phase.BEFORE] * len(life.before)
            times = [after for after, _ in life.during]
            assert times == sorted(times)
            assert all(after <= life.batches for after in times)
            if life.ending.is_early:
                assert (life.during, life.batches) == ((), 0)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_comes_back_from_its_json(name: str) -> None:
    for seed in range(20):
        fault = FAULTS[name].draw(Random(seed))
        assert fault_from_json(json.loads(json.dumps(fault_to_json(fault)))) == fault


def test_what_needs_s3_or_executors_happens_only_there() -> None:
    plain = Setting(Sink.MOR, Place.FOLDER, cluster=False, shards=1, burst=10)
    names = {kind.__name__ for phase in Phase for kind in kinds(phase, plain)}
    assert names & {"HeldRequest", "S3Fails", "ExecutorsDie"} == set()


@pytest.mark.parametrize("kind", POISON)
def test_poison_is_bytes_and_says_what_has_to_become_of_it(kind: str) -> None:
    chance = Random(kind)
    for sink in Sink:
        record = poison(kind, chance, Events(chance).fresh(), sink)
        assert isinstance(record.data, bytes)
        assert (record.row is None) == (not record.fate.may_be_row)


def test_what_has_landed_is_drawn() -> None:
    assert 20 <= len(landed(sql=True)) <= len(POISON)
    assert {*landed(sql=True)} - {*landed(sql=True, framed=True)} == {"a compressed record", "a framed record"}


def newest_of(events: Iterable[Sent]) -> dict[Any, Any]:
    """The highest version of each thing."""
    newest: dict[Any, Any] = {}
    for sent in events:
        assert sent.row is not None
        key, version = sent.row["id"], sent.row["version"]
        newest[key] = max(version, newest.get(key, version))
    return newest


def test_events_have_changes_deletes_and_late_ones() -> None:
    rows = [sent.row for sent in Events(Random(1)).take(3000, NOW)]
    newest: dict[object, int] = {}
    late = 0
    for row in rows:
        assert row is not None
        version = row["version"]
        assert isinstance(version, int)
        late += version < newest.get(row["id"], 0)
        newest[row["id"]] = max(version, newest.get(row["id"], 0))
    assert late > 50
    assert sum(row is not None and row["op"] == "d" for row in rows) > 100
    versions: defaultdict[tuple[object, object], list[object]] = defaultdict(list)
    for row in rows:
        assert row is not None
        versions[row["id"], row["version"]].append(row["op"])
    equal = [ops for ops in versions.values() if len(ops) > 1]
    assert len(equal) > 50
    # A delete has no equal: what is left then would be open.
    assert not any("d" in ops for ops in equal)


def test_things_go_to_other_partitions_where_the_index_finds_them() -> None:
    def days(*, moves: bool) -> int:
        places = {
            (sent.row["id"], sent.row["day"]) for sent in Events(Random(1), moves=moves).take(500, NOW) if sent.row
        }
        return len(places) - len({thing for thing, _ in places})

    assert days(moves=False) == 0
    assert days(moves=True) > 30
    drawn = [draw_scenario("indexes", number).setting for number in range(200)]
    assert {setting.index for setting in drawn if setting.moves} == {"global_simple", "global_bloom"}
    assert {setting.index for setting in drawn if setting.sink is Sink.COW} == set(INDEXES)
    assert {setting.version for setting in drawn if setting.sink is Sink.COW} == {6, 9}
    assert not any(setting.moves for setting in drawn if not setting.sink.is_keyed)


def test_no_version_comes_later_than_a_table_remembers_deletes() -> None:
    """Silence sets the stream's clock forward by hours."""
    events = Events(Random(1))
    before = newest_of(events.take(3000, NOW))
    late = [sent.row for sent in events.take(3000, NOW + LATEST)]
    assert before.keys() & {row["id"] for row in late if row}
    # An equal one is a change of a row that is there.
    assert all(
        row and (row["version"] > (known := before.get(row["id"], 0)) or (row["version"], row["op"]) == (known, "u"))
        for row in late
    )
