"""The journal and retention: a start keeps what is retained then, whatever the folder has."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Host

HOUR_MS = 3600 * 1000


def test_what_is_past_its_retention_is_not_kept_when_it_is_read(host: Host):
    api = host.start(segment_bytes=20_000)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for number in range(100):
        api.put("orders", b"old" * 1000, f"key-{number}")
    api.clock.advance(HOUR_MS)
    shard = api.put("orders", b"new")["ShardId"]
    host.stop()
    assert len(host.segments()) > 10
    # A day after the first of them.
    api.clock.advance(23 * HOUR_MS + 1)

    tracemalloc.start()
    api = host.start(segment_bytes=20_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # Nothing has looked at the stream yet.
    stored = api.application.account.streams["orders"].shards[0]
    assert (len(stored.records()), stored.appended) == (1, 101)
    # All of it are 400 kB.
    assert peak < 200_000
    assert api.read_all("orders", shard) == [b"new"]
    api.put("orders", b"newer")
    api.application.settle()
    assert len(host.segments()) < 5
    assert host.start().read_all("orders", shard) == [b"new", b"newer"]


@pytest.mark.parametrize("restarts", [0, 1])
def test_what_a_longer_retention_keeps_is_read(host: Host, restarts: int):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"old")["ShardId"]
    api.clock.advance(20 * HOUR_MS)
    for _ in range(restarts):
        # So that what tells of it is not in the segment that has the record.
        api = host.start()
    api.call("IncreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=48)
    api.clock.advance(20 * HOUR_MS)

    assert host.start().read_all("orders", shard) == [b"old"]


def test_a_stream_made_anew_has_no_records_of_the_one_before(host: Host):
    api = host.start()
    for text in (b"first", b"second"):
        api.call("CreateStream", StreamName="orders", ShardCount=1)
        shard = api.put("orders", text)["ShardId"]
        api = host.start()
        if text == b"first":
            api.call("DeleteStream", StreamName="orders")

    assert api.read_all("orders", shard) == [b"second"]


def test_a_start_on_a_disk_that_is_full_makes_room_by_what_is_past_its_retention(
    host: Host, monkeypatch: pytest.MonkeyPatch
):
    """It could not write the head of its own segment, and so never came to remove those of others."""
    api = host.start(segment_bytes=2_000)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(3):
        shard = api.put("orders", b"x" * 2_000)["ShardId"]
    size = sum(path.stat().st_size for path in host.segments())
    write = host.disk.write

    def write_while_there_is_room(descriptor: int, data: memoryview) -> int:
        host.disk.free = max(0, size - sum(path.stat().st_size for path in host.folder.glob("*.journal*")))
        return write(descriptor, data)

    monkeypatch.setattr(host.disk, "write", write_while_there_is_room)
    api.clock.advance(25 * HOUR_MS)

    api = host.start(segment_bytes=2_000)

    assert len(host.segments()) == 2
    api.put("orders", b"new")
    assert api.read_all("orders", shard) == [b"new"]
