import random

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi.tombstone_files import TombstoneFiles
from lakestream.sinks.hudi.tombstones import Tombstone, Tombstones, decode, encode, slots


def deleted(key: str, ordering: int | float | str, seen: float = 0.0) -> Tombstone:
    return Tombstone(key, random.Random(key).getrandbits(64) - 2**63, ordering, seen)


def maybe_deleted(known: Tombstones, tombstone: Tombstone) -> bool:
    return all(known.filter[slot] for slot in slots(tombstone.hash, len(known.filter)))


def test_only_older_versions_are_overtaken() -> None:
    known = Tombstones(retain=60)
    known.add([deleted("a", 5)], now=0)
    assert known.overtakes("a", 4)
    assert not known.overtakes("a", 5)
    assert not known.overtakes("a", 6)
    assert not known.overtakes("b", 1)
    assert known.deleted_at("a") == 5


def test_the_highest_delete_of_a_key_counts_whatever_came_last() -> None:
    known = Tombstones(retain=60)
    known.add([deleted("a", 5), deleted("a", 3)], now=0)
    known.add([deleted("a", 4)], now=1)
    assert known.overtakes("a", 4)
    assert len(known) == 1


def test_tombstones_are_forgotten_after_a_while() -> None:
    known = Tombstones(retain=60)
    known.add([deleted("a", 5, seen=0.0)], now=0)
    known.add([deleted("b", 5, seen=50.0)], now=50)
    known.add([deleted("a", 7, seen=55.0)], now=55)  # deleted again: remembered from then on
    known.add([], now=111)
    assert [t.key for t in known] == ["a"]
    known.add([], now=116)
    assert len(known) == 0


def test_above_the_limit_the_oldest_go_first() -> None:
    known = Tombstones(retain=60, limit=3)
    known.add([deleted(key, 1) for key in "abcde"], now=0)
    assert [t.key for t in known] == ["c", "d", "e"]


def test_the_filter_has_every_known_key_and_few_others() -> None:
    known = Tombstones(retain=60)
    keys = [deleted(f"key-{n}", n) for n in range(5_000)]
    for start in range(0, len(keys), 100):
        known.add(keys[start : start + 100], now=0)
    assert all(maybe_deleted(known, key) for key in keys)
    others = [deleted(f"other-{n}", n) for n in range(5_000)]
    assert sum(maybe_deleted(known, other) for other in others) < 0.05 * len(others)


def test_the_filter_shrinks_when_keys_are_forgotten() -> None:
    known = Tombstones(retain=60)
    known.add([deleted(f"key-{n}", n) for n in range(20_000)], now=0)
    large = len(known.filter)
    known.add([deleted("last", 1, seen=100.0)], now=100)
    assert len(known.filter) < large
    assert maybe_deleted(known, deleted("last", 1))


def test_slots_are_those_of_sparks_bitwise_operators_on_signed_longs() -> None:
    # -2: all ones but the last bit; an arithmetic shift keeps the sign.
    assert slots(-2, 1 << 14) == ((1 << 14) - 2, (1 << 14) - 1)
    assert slots(5 << 32, 1 << 14) == (0, 5)


def test_files_round_trip() -> None:
    tombstones = [deleted('{"order_id":"ä"}', 2**60), deleted("b", 1.5), deleted("c", "2026-01-31", seen=1.25)]
    assert decode(encode(tombstones)) == tombstones


def test_a_file_that_was_cut_short_is_as_good_as_none() -> None:
    content = encode([deleted(f"key-{n}", n) for n in range(100)])
    assert decode(content[: len(content) // 2]) == []
    assert decode(b"") == []


class Folder:
    """Files in memory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def put(self, name: str, content: bytes) -> None:
        self.content[name] = content

    def get(self, name: str) -> bytes:
        return self.content[name]

    def list(self) -> list[str]:
        return list(self.content)

    def delete(self, name: str) -> None:
        del self.content[name]


def loaded(folder: Folder) -> set[str]:
    known = Tombstones(retain=60)
    TombstoneFiles(folder, known).load(now=0)
    return {tombstone.key for tombstone in known}


def test_deletes_outlive_the_driver() -> None:
    folder = Folder()
    kept = TombstoneFiles(folder, Tombstones(retain=60))
    kept.remember(BatchRef(0, "checkpoint"), [deleted("a", 1)], now=0)
    kept.remember(BatchRef(1, "checkpoint"), [], now=0)
    kept.remember(BatchRef(2, "checkpoint"), [deleted("b", 1)], now=0)
    assert len(folder.content) == 2  # a batch without deletes has no file
    assert loaded(folder) == {"a", "b"}


def test_files_stay_few_and_nothing_is_lost_also_on_replays() -> None:
    folder = Folder()
    for batch in range(200):
        for _ in range(2 if batch % 7 == 0 else 1):
            # Each time another driver, which knows what it has loaded.
            kept = TombstoneFiles(folder, Tombstones(retain=60))
            kept.load(now=0)
            kept.remember(BatchRef(batch, "checkpoint"), [deleted(f"key-{batch}", 1)], now=0)
        assert len(folder.content) <= 65
        assert loaded(folder) == {f"key-{done}" for done in range(batch + 1)}


def test_a_driver_that_dies_while_it_puts_all_into_one_file_loses_none() -> None:
    folder = Folder()
    kept = TombstoneFiles(folder, Tombstones(retain=60))
    for batch in range(64):
        kept.remember(BatchRef(batch, "checkpoint"), [deleted(f"key-{batch}", 1)], now=0)
    folder.content["b000000000064-checkpoi"] = b"cut sho"
    assert loaded(folder) == {f"key-{batch}" for batch in range(64)}
