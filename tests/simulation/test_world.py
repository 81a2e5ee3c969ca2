"""The simulated stream, driver and cluster keep to what the real ones do."""

from dataclasses import replace

import numpy as np
import pytest

from lakestream_api import BatchSummary, DriverReport
from lakestream_bench.simulation.costs import load_costs
from lakestream_bench.simulation.streams import Compaction, Mishap, Mishaps, Scenario, Stream
from lakestream_bench.simulation.world import World
from lakestream_operator.autoscaler import window_of

COSTS = load_costs("mor")
STREAM = Stream(64, COSTS, 1)


def scenario(*levels: float, **more: object) -> Scenario:
    """A load that has a level a minute."""
    return STREAM.scenario("made", "for a test", np.repeat(levels, 60), **more)  # type: ignore[arg-type]


def run(one: Scenario, executors: int = 8) -> World:
    world = World(one, COSTS, executors)
    world.run(float(one.seconds))
    world.close()
    return world


def test_what_comes_after_an_hour_of_silence_is_read() -> None:
    world = run(scenario(0.3, *[0.0] * 60, 0.3, 0.3, 0.0, 0.0))
    assert world.scenario.arrived(world.committed) == pytest.approx(world.scenario.arrived(world.now))


def test_executors_that_are_not_wanted_leave_while_nothing_comes() -> None:
    world = World(scenario(0.3, *[0.0] * 10), COSTS, 8)
    world.run(120.0)
    world.aim(1)
    world.run(130.0)
    assert world.cluster.running == 1


def test_the_first_batch_after_silence_is_one_that_few_executors_can_do_in_time() -> None:
    """And it tells how much comes now, not how long nothing came."""
    one = scenario(0.5, 0.5, *[0.0] * 10, 0.5)
    world = World(one, COSTS, 16)
    world.run(120.0)
    world.aim(1)
    world.run(750.0)
    assert world.report().fetched is not None
    fetched = world.report().fetched
    assert fetched.fetched_at.timestamp() > world.report().started_at.timestamp() + 720
    assert fetched.slice_seconds is not None
    assert fetched.records / fetched.slice_seconds == pytest.approx(one.rate[-1], rel=0.05)


def test_silence_is_not_late() -> None:
    world = run(scenario(0.3, *[0.0] * 60, 0.3))
    assert world.meter.late == 0
    assert max(lag for _, lag, _, _ in world.meter.trace) < 60


def test_what_is_not_committed_is_late_from_the_age_of_its_oldest_record() -> None:
    died = (Mishap(100.0, Mishaps.DIED),)
    world = run(replace(scenario(0.0, 0.3, 0.3, 0.3), mishaps=died))
    # The first record came at 60 s; batches that were committed before the end brought the oldest to less than 100 s.
    oldest = world.scenario.next_arrival(world.committed)
    assert 60 <= oldest <= 100
    assert world.meter.late == pytest.approx(240 - oldest - 60)


def test_work_of_lost_executors_is_done_again() -> None:
    calm = run(scenario(*[0.3] * 5))
    lost = tuple(Mishap(at + 0.3, Mishaps.LOST, 4) for at in range(60, 240, 10))
    hit = run(replace(scenario(*[0.3] * 5), mishaps=lost))
    assert hit.meter.busy / hit.meter.records > 1.05 * calm.meter.busy / calm.meter.records


def test_while_tasks_stand_still_nothing_is_committed() -> None:
    stop = (Mishap(60.0, Mishaps.STOPPED), Mishap(100.0, Mishaps.RESUMED))
    world = run(replace(scenario(*[0.3] * 3), mishaps=stop))
    assert not [at for at, *_ in world.meter.trace if 60 < at < 100]


def test_new_executors_are_slower_until_they_are_warm() -> None:
    def executors_lost(warming: float) -> World:
        lost = (Mishap(30.0, Mishaps.LOST, 7),)
        return run(replace(scenario(*[0.5] * 5), mishaps=lost, warming=warming))

    assert executors_lost(120.0).meter.late >= executors_lost(0.0).meter.late
    assert executors_lost(120.0).committed <= executors_lost(0.0).committed


def test_a_batch_behind_that_of_another_writer_holds_its_slots_until_that_one_is_paid_off() -> None:
    def longest(consumers: int) -> BatchSummary:
        report = run(scenario(*[0.9] * 9, consumers=consumers), executors=20).report()
        return max(report.batches, key=lambda batch: batch.seconds.fetch)

    alone, behind = longest(1), longest(2)
    assert behind.seconds.fetch > alone.seconds.fetch + 3, "in 10 s a shard gets 9.4 MB, which take 4.7 s"
    assert alone.core_seconds
    assert behind.core_seconds
    assert behind.core_seconds.fetch > 1.5 * alone.core_seconds.fetch


def test_compaction_has_a_quarter_of_the_slots_beside_batches_and_is_told() -> None:
    calm = run(scenario(*[0.3] * 10), executors=6)
    world = World(replace(scenario(*[0.3] * 10), compaction=Compaction(20, 0.5)), COSTS, 6)
    told: dict[int, float] = {}
    while world.now < 600:
        world.run(world.now + 30)
        told |= {batch.batch: batch.core_seconds.services for batch in world.report().batches if batch.core_seconds}
    # Batches take 64 % of the slots: half of them would be too few while compaction runs.
    assert max(lag for _, lag, _, _ in world.meter.trace) < 30
    assert world.meter.busy > 1.1 * calm.meter.busy
    assert sum(told.values()) == pytest.approx(world.meter.busy - calm.meter.busy, rel=0.05)
    # In a batch's time: all slots where no batch has tasks, and a quarter of them, not a half, where one has.
    idle = 1 - calm.meter.busy / (600 * 12)
    assert max(told.values()) < (idle + (1 - idle) / 3) * 10 * 12


def test_the_operator_reads_what_the_driver_says() -> None:
    world = run(scenario(0.3, 0.3))
    report = world.report()
    told = DriverReport.model_validate_json(report.model_dump_json())
    window = window_of(world.scenario.spec, told, None, consumers=1)
    assert window.batches[-1].records == report.batches[-1].records
    assert window.batches[-1].finished_at == report.batches[-1].finished_at
    assert window.limits.interval == 10
    assert window.limits.cores == 2


def test_at_the_tip_a_batch_is_fetched_when_the_sink_is_free() -> None:
    """Planned when it is due, it would wait for the sink, where writing takes longer than the interval."""
    costs = replace(
        COSTS, finish=replace(COSTS.finish, fixed=14.0, residual=0.0), prepare=replace(COSTS.prepare, residual=0.0)
    )
    world = World(scenario(*[0.1] * 10), costs, 20)
    world.run(600.0)
    for batch in world.report().batches:
        assert batch.horizon is not None
        age = (batch.finished_at - batch.horizon).total_seconds()
        assert age < batch.seconds.fetch + batch.seconds.write + 5
