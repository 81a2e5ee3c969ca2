"""What a fault does to a world goes by the driver that is there."""

from __future__ import annotations

from random import Random
from signal import SIGTERM
from types import SimpleNamespace
from typing import cast

import pytest

from chaos.driver import Driver
from chaos.faults.disturbances import DeletingForbidden, ListingsStale
from chaos.faults.endings import CrashAt, Terminate
from chaos.producer import hash_keys_of
from chaos.s3 import AWAITED, S3Faults, S3Request
from chaos.world import World
from lakestream_localkinesis.testing import local_kinesis

DELETE = S3Request("DELETE", "/chaos/table/.hoodie/1.commit.requested", "", {})
MANY = 10 * AWAITED


class _Hanging:
    """A driver that goes on after some calms, if ever, and then dies at its step."""

    name = "driver-01"

    def __init__(self, calms: int) -> None:
        self.left = calms
        self.ended = False

    def wait(self, seconds: float) -> int | None:
        return None if self.left > 0 else -9

    def end(self) -> None:
        self.ended = True


@pytest.mark.parametrize(
    ("batches", "restores", "denied"), [(None, 0, AWAITED), (0, 0, AWAITED), (1, 0, MANY), (1, 1, AWAITED)]
)
def test_only_a_driver_that_works_can_do_without_the_right_to_delete(
    batches: int | None, restores: int, denied: int
) -> None:
    faults = S3Faults(Random(1))
    driver = None if batches is None else SimpleNamespace(batches=batches)
    asked = SimpleNamespace(restores=restores)
    world = SimpleNamespace(proxy=SimpleNamespace(faults=faults), driver=driver, asked=asked)
    DeletingForbidden().strike(cast(World, world))
    assert sum(faults.strikes(DELETE) is not None for _ in range(MANY)) == denied


@pytest.mark.parametrize(("calms", "stuck"), [(0, False), (1, False), (2, True)])
def test_a_driver_that_never_comes_to_its_step_though_all_is_calm_is_stuck(calms: int, stuck: bool) -> None:
    driver, told, faults = _Hanging(calms), list[str](), list[str]()

    def calm() -> None:
        driver.left -= 1

    world = SimpleNamespace(tell=told.append, calm=calm, faults=faults)
    CrashAt("half_read", 1).end(cast(World, world), cast(Driver, driver))
    assert bool(told) == (calms > 0)
    assert (faults == ["stuck: driver-01 never came to half_read"]) == stuck
    assert driver.ended == stuck


@pytest.mark.parametrize(
    ("status", "said", "is_fault"),
    [(0, "ended after 3 batches", False), (-SIGTERM, "", False), (-SIGTERM, "epoch 2", True), (1, "", True)],
)
def test_a_driver_that_is_up_ends_in_order_when_asked_to(status: int, said: str, is_fault: bool) -> None:
    faults, told = list[str](), list[str]()
    process = SimpleNamespace(terminate=lambda: None)
    driver = SimpleNamespace(
        name="driver-01", hurt=False, process=process, wait=lambda seconds: status, last_word=lambda: said
    )
    world = SimpleNamespace(tell=told.append, calm=lambda: None, stressed=False, faults=faults)
    Terminate(0, whole_group=False).end(cast(World, world), cast(Driver, driver))
    assert bool(faults) == is_fault


def test_listings_are_stale_for_drivers_and_the_audit_knows_better() -> None:
    reshards = list[float]()
    with local_kinesis() as kinesis:
        client = kinesis.client()
        kinesis.create_stream("things", shards=1)
        kinesis.clock.freeze()
        kinesis.clock.advance(60)
        [parent] = client.list_shards(StreamName="things")["Shards"]
        client.split_shard(StreamName="things", ShardToSplit=parent["ShardId"], NewStartingHashKey=str(2**127))
        kinesis.clock.advance(1)
        world = SimpleNamespace(
            kinesis=kinesis,
            driver=SimpleNamespace(hurt=False),
            stressed=False,
            reshard=lambda chance, seconds: reshards.append(seconds),
        )
        ListingsStale(4.0, 1.0, 2, 1).strike(cast(World, world))
        assert (world.stressed, world.driver.hurt, reshards) == (True, True, [2.0])
        assert len(hash_keys_of(client, "things")) == 3
        listed = [client.list_shards(StreamName="things")["Shards"] for _ in range(3)]
        assert [len(shards) for shards in listed] == [1, 1, 3]
