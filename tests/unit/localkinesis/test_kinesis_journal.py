"""The journal: what was acknowledged is there after a restart, and what is wrong with a folder is told."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from lakestream_localkinesis.core.account import AccountSettings
from lakestream_localkinesis.core.clock import SystemClock
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.errors import StartupError
from lakestream_localkinesis.http import Request
from lakestream_localkinesis.journal.entries import Head, frame, read_entries
from lakestream_localkinesis.journal.journal import Journal
from tests.unit.localkinesis.conftest import subscribe

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api, Host

START_MS = 1_700_000_000_000
HOUR_MS = 3600 * 1000
SETTINGS = AccountSettings(limits=Limits.none())


def described(api: Api, stream: str) -> dict[str, Any]:
    return {
        "summary": api.call("DescribeStreamSummary", StreamName=stream),
        "shards": api.shards(stream),
        "tags": api.call("ListTagsForStream", StreamName=stream),
        "consumers": api.call("ListStreamConsumers", StreamARN=api.application.account.arn(stream)),
    }


def held(api: Api, stream: str) -> list[tuple[str, list[bytes]]]:
    return [(shard["ShardId"], api.read_all(stream, shard["ShardId"])) for shard in api.shards(stream)]


def test_records_are_there_with_their_numbers_and_new_ones_come_after_them(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=2)
    first = [api.put("orders", b"%d" % i, f"key-{i}")["SequenceNumber"] for i in range(20)]
    before = held(api, "orders")

    api = host.start()

    assert held(api, "orders") == before
    assert int(api.put("orders", b"new", "key-0")["SequenceNumber"]) > int(first[0])
    records = api.read(api.iterator("orders", api.shards("orders")[0]["ShardId"]))["Records"]
    numbers = [int(record["SequenceNumber"]) for record in records]
    assert numbers == sorted(set(numbers))
    assert {str(number) for number in numbers[:-1]} <= set(first)


def test_shards_that_a_put_makes_an_on_demand_stream_open_are_kept_with_it(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", StreamModeDetails={"StreamMode": "ON_DEMAND"})
    arn = api.application.account.arn("orders")
    api.put("orders", b"first", "a")
    for mode in ("PROVISIONED", "ON_DEMAND"):
        api.call("UpdateStreamMode", StreamARN=arn, StreamModeDetails={"StreamMode": mode})
        for count in (2, 1) if mode == "PROVISIONED" else ():
            api.call("UpdateShardCount", StreamName="orders", TargetShardCount=count, ScalingType="UNIFORM_SCALING")
    for _ in range(70):
        api.put_many("orders", *[(b"", str(number)) for number in range(500)])
    # 583 records a second are more than half of what a shard takes: it is split as soon as the minute is over.
    api.clock.advance(60_000)
    for number in range(20):
        api.put("orders", b"%d" % number, f"key-{number}")
    # Not by `held`, which asks what looks at all there is.
    shards = api.application.account.streams["orders"].shards.values()
    before = [(shard.id, shard.records()) for shard in shards]
    assert len([shard for shard in shards if shard.is_open]) == 2

    api = host.start()

    assert [
        (shard.id, shard.records()) for shard in api.application.account.streams["orders"].shards.values()
    ] == before


def test_all_of_a_stream_is_described_as_before(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=2, Tags={"team": "lake"})
    arn = api.application.account.arn("orders")
    api.call("SplitShard", StreamName="orders", ShardToSplit="shardId-000000000000", NewStartingHashKey="1000")
    api.call("IncreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=48)
    api.call("UpdateMaxRecordSize", StreamARN=arn, MaxRecordSizeInKiB=2048)
    api.call("RegisterStreamConsumer", StreamARN=arn, ConsumerName="lake", Tags={"a": "b"})
    api.call("CreateStream", StreamName="clicks", RecordDistributionStrategy="AUTO")
    api.call("CreateStream", StreamName="gone", ShardCount=1)
    api.call("DeleteStream", StreamName="gone")
    before = {name: described(api, name) for name in ("orders", "clicks")}

    api = host.start()

    assert {name: described(api, name) for name in api.call("ListStreams")["StreamNames"]} == before


def test_records_are_there_that_came_with_the_first_look_at_new_shards(host: Host):
    api = host.start(AccountSettings(limits=Limits.none(), transition_ms=10_000))
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.clock.advance(10_000)
    shard = api.put("orders", b"first")["ShardId"]

    assert host.start().read_all("orders", shard) == [b"first"]


def test_figures_of_what_came_in_go_on(host: Host):
    def incoming(api: Api) -> list[str]:
        body = api.application.handle(Request("GET", "/metrics", {}, b"")).body.decode()
        return [line for line in body.splitlines() if line.startswith(("kinesis_incoming", "kinesis_retained"))]

    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.put_many("orders", (b"one", "key"), (b"three", "key"))
    api.put("orders", b"x")

    assert incoming(host.start()) == incoming(api)


def test_iterators_and_list_tokens_are_good_after_a_restart(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=3)
    api.put("orders", b"read")
    shard = api.put("orders", b"unread")["ShardId"]
    iterator = api.read(api.iterator("orders", shard), Limit=1)["NextShardIterator"]
    token = api.call("ListShards", StreamName="orders", MaxResults=1)["NextToken"]

    api = host.start()

    assert api.payloads(api.read(iterator)) == [b"unread"]
    assert len(api.call("ListShards", NextToken=token)["Shards"]) == 2


def test_a_key_that_a_loss_of_power_left_empty_is_made_anew(host: Host, caplog: pytest.LogCaptureFixture):
    """It sealed by another key at each start, and nobody was told."""
    host.start()
    (host.folder / "key").write_bytes(b"")

    api = host.start()

    assert f"{host.folder}/key is empty: a new key is made" in caplog.text
    made = (host.folder / "key").read_bytes()
    assert len(made) == 16
    assert (host.folder / "key").stat().st_mode & 0o777 == 0o600
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    iterator = api.iterator("orders", "shardId-000000000000")
    api = host.start()
    assert (host.folder / "key").read_bytes() == made
    assert api.read(iterator)["Records"] == []


@pytest.mark.parametrize("length", [1, 15, 17, 64])
def test_a_key_of_another_length_is_told(host: Host, length: int):
    """More than 32 bytes of it ended in a traceback, at the first iterator."""
    host.start()
    (host.folder / "key").write_bytes(bytes(length))
    with pytest.raises(StartupError, match=f"{host.folder}/key has {length} bytes, and a key has 16"):
        host.start()


def test_a_key_is_on_the_disk_before_it_has_its_name(host: Host, monkeypatch: pytest.MonkeyPatch):
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append((host.folder / "key.new").read_bytes()))
    host.start()
    assert synced == [(host.folder / "key").read_bytes()]


def test_the_key_of_tokens_is_for_its_owner_alone(host: Host):
    host.start()
    assert (host.folder / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("later_ms", [1_000, 60_000])
def test_a_change_under_way_goes_on_and_ends_when_it_was_due(host: Host, later_ms: int):
    slow = AccountSettings(limits=Limits.none(), transition_ms=10_000)
    api = host.start(slow)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.clock.advance(10_000)
    api.call("UpdateShardCount", StreamName="orders", TargetShardCount=2, ScalingType="UNIFORM_SCALING")
    api.clock.advance(later_ms)

    # Another server has the same folder, and no transition of its own.
    api = host.start()

    ended = later_ms >= 10_000
    summary = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
    assert summary["StreamStatus"] == ("ACTIVE" if ended else "UPDATING")
    api.clock.advance(10_000)
    assert len(api.shards("orders", ShardFilter={"Type": "AT_LATEST"})) == 2


def test_what_was_gone_stays_gone_when_retention_grows(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"old")["ShardId"]
    api.clock.advance(25 * HOUR_MS)
    api.call("IncreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=48)
    api.put("orders", b"new")

    assert host.start().read_all("orders", shard) == [b"new"]


def test_an_on_demand_stream_grows_on_from_what_it_has_seen(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="wide")
    records = [(b"", str(i)) for i in range(500)]
    for _ in range(2):
        for _ in range(150):
            api.put_many("wide", *records)
        api.clock.advance(30_000)
        # The first half of the minute is the first server's.
        api = host.start()
    # 625 records a second to each of the four.
    api.application.settle()
    grown = described(api, "wide")
    assert grown["summary"]["StreamDescriptionSummary"]["OpenShardCount"] == 8
    # Growth comes of a settlement, not of a request that asks for it.
    assert described(host.start(), "wide") == grown


def test_segments_go_when_all_their_records_are_past_retention(host: Host):
    api = host.start(segment_bytes=20_000)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(4):
        for i in range(10):
            api.put("orders", b"x" * 1000, f"key-{i}")
        api.clock.advance(10 * HOUR_MS)
    full = len(host.segments())
    api.application.settle()
    kept = len(host.segments())

    assert full > kept
    before = held(api, "orders")
    assert held(host.start(segment_bytes=20_000), "orders") == before


def test_a_segment_that_cannot_be_removed_ends_nothing(host: Host, monkeypatch: pytest.MonkeyPatch):
    host.start()
    api = host.start()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied")))
        api.application.settle()
    assert len(host.segments()) == 2
    api.application.settle()
    assert len(host.segments()) == 1


def test_a_shard_whose_records_are_gone_goes_on_with_its_numbers(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    old = api.put("orders", b"old")["SequenceNumber"]
    api = host.start()
    api.clock.advance(25 * HOUR_MS)
    api.application.settle()
    api.call("AddTagsToStream", StreamName="orders", Tags={"a": "b"})
    new = api.put("orders", b"new")

    api = host.start()
    assert api.read_all("orders", new["ShardId"]) == [b"new"]
    newer = int(api.put("orders", b"newer")["SequenceNumber"])
    assert int(old) < int(new["SequenceNumber"]) < newer


def test_restarts_leave_no_segments_behind_that_have_nothing(host: Host):
    for _ in range(5):
        api = host.start()
        api.application.settle()
    assert len(host.segments()) == 1


def test_a_write_that_was_cut_short_is_cut_off_and_logged(host: Host, caplog: pytest.LogCaptureFixture):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"first")["ShardId"]
    api.put("orders", b"second")
    host.stop()
    (segment,) = host.segments()
    os.truncate(segment, segment.stat().st_size - 3)

    api = host.start()

    assert api.read_all("orders", shard) == [b"first"]
    assert f"{segment}: the last" in caplog.text
    api.put("orders", b"third")
    assert host.start().read_all("orders", shard) == [b"first", b"third"]


@pytest.mark.parametrize("lost_again", [False, True])
def test_no_number_is_given_again_of_a_record_that_a_loss_of_power_took(host: Host, lost_again: bool):
    """Who had read the lost ones missed as many of those that came next: they had lower numbers."""
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"kept")["ShardId"]
    for _ in range(1 + lost_again):
        kept = host.segments()[-1].stat().st_size
        lost = [api.put("orders", b"lost")["SequenceNumber"] for _ in range(3)]
        read = api.read(api.iterator("orders", shard))["NextShardIterator"]
        os.truncate(host.segments()[-1], kept)
        api.clock.advance(1)
        api = host.start()

    put = [api.put("orders", b"%d" % number)["SequenceNumber"] for number in range(2)]

    assert int(lost[-1]) < int(put[0]) < int(put[1])
    after = api.iterator("orders", shard, "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=lost[-1])
    assert api.payloads(api.read(after)) == api.payloads(api.read(read)) == [b"0", b"1"]
    before = held(api, "orders")
    assert held(host.start(), "orders") == before


def test_blocks_that_a_machine_without_power_did_not_write_are_cut_off(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"first")["ShardId"]
    host.stop()
    (segment,) = host.segments()
    os.truncate(segment, segment.stat().st_size + 4096)
    (host.folder / "000000000002.journal").write_bytes(b"")

    assert host.start().read_all("orders", shard) == [b"first"]


@pytest.mark.parametrize("written", [1, 5, 12, 13, 60, -1])
@pytest.mark.parametrize("is_followed", [False, True])
def test_blocks_that_were_not_written_begin_anywhere(host: Host, written: int, is_followed: bool):
    """Where they began in the middle of an entry, and not at its end, the file was said to be damaged."""
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"first")["ShardId"]
    (segment,) = host.segments()
    before = segment.stat().st_size
    api.put("orders", b"second" * 100)
    after = segment.stat().st_size
    if is_followed:
        host.start()
    host.stop()
    os.truncate(segment, (before if written > 0 else after) + written)
    os.truncate(segment, after + 4096)

    assert host.start().read_all("orders", shard) == [b"first"]


@pytest.mark.parametrize("lost", ["part of a record", "a record", "all", "blocks"])
def test_a_segment_that_another_one_follows_may_have_lost_its_end(
    host: Host, lost: str, caplog: pytest.LogCaptureFixture
):
    """Files are written to the disk in any order: the one before the last may be the one that a loss of power cut."""
    host.start()
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"first")["ShardId"]
    torn = host.segments()[-1]
    whole = torn.stat().st_size
    api.put("orders", b"second")
    after = torn.stat().st_size
    api = host.start()
    api.put("orders", b"third")
    host.stop()
    os.truncate(torn, {"part of a record": after - 3, "all": 0}.get(lost, whole))
    if lost == "blocks":
        os.truncate(torn, after)

    api = host.start()

    kept = [] if lost == "all" else [b"first"]
    assert api.read_all("orders", shard) == [*kept, b"third"]
    assert f"{host.segments()[2]}: {2 - len(kept)} records that were acknowledged are missing before it" in caplog.text
    assert (f"{torn}: the last" in caplog.text) == (lost in {"part of a record", "blocks"})
    api.put("orders", b"fourth")
    assert host.start().read_all("orders", shard) == [*kept, b"third", b"fourth"]


def test_segments_whose_records_went_with_retention_are_not_missed(host: Host, caplog: pytest.LogCaptureFixture):
    api = host.start(segment_bytes=3000)
    for name, hours in (("short", 24), ("long", 48)):
        api.call("CreateStream", StreamName=name, ShardCount=1)
        api.call("IncreaseStreamRetentionPeriod", StreamName=name, RetentionPeriodHours=hours)
    for name in ("long", "short", "long"):
        for _ in range(4):
            api.put(name, b"x" * 2000)
    before = len(host.segments())
    api.clock.advance(30 * HOUR_MS)
    api.application.settle()
    assert len(host.segments()) < before

    host.start()
    assert "missing" not in caplog.text


def damage(segment: Path, place: int) -> None:
    content = bytearray(segment.read_bytes())
    content[place] ^= 0xFF
    segment.write_bytes(content)


@pytest.mark.parametrize("place", [3, 40, 200])
def test_a_damaged_middle_is_named_with_what_to_do(host: Host, place: int):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(5):
        api.put("orders", b"x" * 100)
    host.start()
    host.stop()
    damage(host.segments()[0], place)

    with pytest.raises(StartupError, match=r"000000000001\.journal is damaged at byte \d+.*move it away"):
        host.start()


@pytest.mark.parametrize("is_followed", [False, True])
def test_the_last_segment_is_not_to_be_moved_away(host: Host, is_followed: bool):
    """Without it shards are open again that readers have read to their end."""
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api = host.start()
    for _ in range(5):
        api.put("orders", b"x" * 100)
    host.stop()
    damage(host.segments()[-1], 200)
    if is_followed:
        # By one that has not even begun.
        (host.folder / "000000000003.journal").write_bytes(b"")

    told = r"000000000002\.journal is damaged at byte \d+.*It is the last one.*Put back a copy.*or begin anew"
    with pytest.raises(StartupError, match=told) as refused:
        host.start()
    assert "move it away" not in str(refused.value)


def test_without_a_damaged_segment_the_others_go_on(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"first")["ShardId"]
    api = host.start()
    api.put("orders", b"second")
    api = host.start()
    api.put("orders", b"third")
    host.stop()
    host.segments()[1].unlink()

    api = host.start()
    assert api.read_all("orders", shard) == [b"first", b"third"]
    api.put("orders", b"fourth")
    assert host.start().read_all("orders", shard) == [b"first", b"third", b"fourth"]


def test_records_of_a_segment_that_is_gone_are_no_part_of_a_page(host: Host):
    """Who read the first page across the gap was throttled for the bytes of all that was missing."""
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"first")["ShardId"]
    api = host.start(segment_bytes=1 << 30)
    for _ in range(12):
        api.put("orders", b"lost" * 250_000)
    api = host.start()
    api.put("orders", b"last!")
    host.stop()
    host.segments()[1].unlink()

    api = host.start(AccountSettings())
    assert api.read_all("orders", shard) == [b"first", b"last!"]
    assert api.read_all("orders", shard) == [b"first", b"last!"]
    assert api.application.account.streams["orders"].shards[0].counters.outgoing_bytes == 2 * len(b"firstkeylast!key")


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_without_a_damaged_segment_subscriptions_continue_where_they_were(host: Host, kind: str):
    """A continuation counted the records that are missing, and lay behind some of those before them."""
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"1" * 700_000)["ShardId"]
    api.put("orders", b"2" * 700_000)
    for data in (b"3", b"4"):
        api = host.start()
        api.put("orders", data)
    host.stop()
    host.segments()[-2].unlink()
    api = host.start()
    arn = api.application.account.arn("orders")
    consumer = api.call("RegisterStreamConsumer", StreamARN=arn, ConsumerName="lake")["Consumer"]["ConsumerARN"]
    event = subscribe(api, consumer, shard).poll()
    assert event is not None
    assert [record["Data"][:1] for record in event["Records"]] == [b"1"]
    api.clock.advance(5_000)

    following = subscribe(api, consumer, shard, kind, SequenceNumber=event["ContinuationSequenceNumber"]).poll()

    assert following is not None
    assert following["Records"][0]["Data"][:1] == b"2"


def test_a_folder_is_one_servers(host: Host):
    host.start()
    with pytest.raises(StartupError, match=rf"data is in use by another server \(process {os.getpid()} on "):
        Journal(host.folder, SETTINGS, START_MS)


def test_a_folder_that_is_none_is_told(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StartupError, match="file cannot be used for the data"):
        Journal(tmp_path / "file", SETTINGS, START_MS)


def test_of_files_beside_its_own_none_is_touched(host: Host):
    host.folder.mkdir()
    names = ["key.new", "000000000007.journal.new", "notes.new", "copy-000000000007.journal.new"]
    for name in names:
        (host.folder / name).write_bytes(b"mine")
    host.start()
    assert [name for name in names if (host.folder / name).exists()] == ["notes.new", "copy-000000000007.journal.new"]


@pytest.mark.parametrize("version", [1, 3])
def test_a_folder_of_a_later_version_is_refused_and_of_an_earlier_one_read(host: Host, version: int):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api = host.start()
    shard = api.put("orders", b"first")["ShardId"]
    host.stop()
    for segment in host.segments():
        with segment.open("rb") as file:
            entries = [entry for _, entry in read_entries(file, segment.stat().st_size)]
        heads = [replace(entry, version=version) if isinstance(entry, Head) else entry for entry in entries]
        segment.write_bytes(b"".join(map(frame, heads)))
    if version == 1:
        assert host.start().read_all("orders", shard) == [b"first"]
    else:
        with pytest.raises(StartupError, match="is of version 3, and this server reads 2 at most: use another folder"):
            host.start()


def test_another_account_or_region_is_refused(host: Host):
    host.start()
    with pytest.raises(StartupError, match="start it with --account 000000000000 --region us-east-1"):
        host.start(AccountSettings(region="eu-west-1"))


def test_a_full_disk_fails_requests_until_there_is_room(host: Host, caplog: pytest.LogCaptureFixture):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"kept")["ShardId"]
    iterator = api.iterator("orders", shard)
    host.disk.free = 50

    puts = [lambda data=data: api.put("orders", data) for data in (b"ambiguous", b"refused")]
    for operation in (*puts, lambda: api.read(iterator)):
        with pytest.raises(Exception, match=r"InternalFailure: .*No space left on device") as refused:
            operation()
        assert refused.value.status == 500  # type: ignore[attr-defined]
    assert caplog.text.count(f"{host.folder} cannot be written to") == 1
    # Who ends here has what was acknowledged.
    host.disk.free = None
    assert api.payloads(api.read(iterator)) == [b"kept", b"ambiguous"]
    assert f"{host.folder} can be written to again" in caplog.text
    api.put("orders", b"after")
    assert host.start().read_all("orders", shard) == [b"kept", b"ambiguous", b"after"]


def test_a_disk_that_the_journal_filled_has_room_when_retention_has_taken_its_records(host: Host):
    api = host.start(segment_bytes=2000)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.put("orders", b"x" * 2000)
    assert len(host.segments()) == 2
    host.disk.free = 0
    api.respond("PutRecord", StreamName="orders", PartitionKey="key", Data=api.encoded(b"ambiguous"))

    api.clock.advance(25 * HOUR_MS)
    api.application.settle()

    # What waits to be written keeps nothing from being removed.
    assert len(host.segments()) == 1


def test_who_is_killed_while_the_disk_is_full_has_what_was_acknowledged(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = api.put("orders", b"kept")["ShardId"]
    host.disk.free = 50
    api.respond("PutRecord", StreamName="orders", PartitionKey="key", Data=api.encoded(b"lost"))
    host.disk.free = None

    assert host.start().read_all("orders", shard) == [b"kept"]


def test_subscriptions_push_nothing_that_is_not_written_down(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    arn = api.application.account.arn("orders")
    consumer = api.call("RegisterStreamConsumer", StreamARN=arn, ConsumerName="lake")["Consumer"]["ConsumerARN"]
    start = {"Type": "TRIM_HORIZON"}
    response = api.respond(
        "SubscribeToShard", ConsumerARN=consumer, ShardId="shardId-000000000000", StartingPosition=start
    )
    assert response.events

    def push() -> bytes:
        assert response.events
        return api.application.push(response.events, api.clock.now_ms())

    while push():
        pass
    host.disk.free = 0
    api.respond("PutRecord", StreamName="orders", PartitionKey="key", Data=api.encoded(b"data"))
    assert push() == b""
    host.disk.free = None
    assert api.encoded(b"data").encode() in push()


def test_streams_that_tests_make_are_kept_as_well(host: Host):
    api = host.start()
    body = b'{"name": "orders", "shards": 3}'
    assert api.application.handle(Request("POST", "/_testing/streams", {}, body)).status == 200
    assert len(host.start().shards("orders")) == 3


def test_time_goes_on_from_the_last_that_was_written(host: Host):
    api = host.start()
    api.clock.advance(HOUR_MS)
    api.application.settle()
    host.stop()
    journal = Journal(host.folder, SETTINGS, START_MS)
    journal.close()
    assert journal.last_ms == START_MS + HOUR_MS


def test_a_clock_behind_what_has_been_goes_on_from_there():
    ahead = SystemClock().now_ms() + HOUR_MS
    clock = SystemClock(ahead)
    assert HOUR_MS - 10_000 < clock.ahead_ms <= HOUR_MS
    assert ahead <= clock.now_ms() < ahead + 10_000
    assert SystemClock(1).ahead_ms == 0


@pytest.mark.parametrize("name", ["000000000002 (copy).journal", "before.journal", "2.journal"])
def test_a_copy_that_somebody_made_of_a_segment_is_none(host: Host, name: str):
    """Read as well, it gave each record a second time, or kept the server from starting."""
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api = host.start()
    api.put("orders", b"once")
    host.stop()
    copy = host.folder / name
    copy.write_bytes(host.segments()[-1].read_bytes())

    for _ in range(2):
        assert host.start().read_all("orders", "shardId-000000000000") == [b"once"]
    assert copy.exists(), "it is somebody's"
