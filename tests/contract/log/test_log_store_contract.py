"""What every `LogStore` must do; the log's guarantees rest on these."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from moto_s3 import s3_client

from lakestream.log import LogStore, ObstoreLogStore
from lakestream.log.store import claim
from lakestream.storage import LakePath, ObjectExistsError, ObjectNotFoundError, S3Settings, StoreSettings

WRITERS = 16


def test_a_created_object_is_read_back_by_another_handle(open_same: Callable[[], LogStore]) -> None:
    body = bytes(range(256)) * 40
    open_same().create("batches/000000000001.json.gz", body)
    assert open_same().get("batches/000000000001.json.gz") == body


def test_an_empty_object_is_an_object(store: LogStore) -> None:
    store.create("a", b"")
    assert store.get("a") == b""


def test_the_second_create_fails_and_leaves_the_first_content(open_same: Callable[[], LogStore]) -> None:
    open_same().create("identity.json", b"first")
    with pytest.raises(ObjectExistsError, match=r"identity\.json"):
        open_same().create("identity.json", b"second")
    assert open_same().get("identity.json") == b"first"


def test_of_many_writers_of_one_key_exactly_one_wins(open_same: Callable[[], LogStore]) -> None:
    handles = [open_same() for _ in range(WRITERS)]
    for round_number in range(5):
        key, start = f"commits/{round_number:012d}.json.gz", Barrier(WRITERS)

        def race(writer: int, handle: LogStore, key: str = key, start: Barrier = start) -> bool:
            start.wait()
            return claim(handle, key, b"by %d " % writer * 1000)

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(race, range(WRITERS), handles))
        assert won.count(True) == 1
        assert handles[0].get(key) == b"by %d " % won.index(True) * 1000


def test_reading_what_does_not_exist(store: LogStore) -> None:
    with pytest.raises(ObjectNotFoundError, match="commits/7"):
        store.get("commits/7")


def test_a_listing_is_sorted_and_keeps_to_its_folder(store: LogStore) -> None:
    for key in ("epochs/2", "epochs/10", "epochs/1", "epochs-old/3", "batches/1"):
        store.create(key, b"x")
    assert store.list("epochs") == ["epochs/1", "epochs/10", "epochs/2"]
    assert store.list("commits") == []


def test_a_listing_after_a_key_leaves_it_out(store: LogStore) -> None:
    for number in range(1, 5):
        store.create(f"epochs/{number:012d}.json", b"x")
    assert store.list("epochs", after="epochs/000000000002.json") == [
        "epochs/000000000003.json",
        "epochs/000000000004.json",
    ]
    assert store.list("epochs", after="epochs/000000000004.json") == []


def test_deleting_many_and_some_that_are_gone(store: LogStore) -> None:
    keys = [f"batches/{number}" for number in range(6)]
    for key in keys[1:]:
        store.create(key, b"x")
    store.delete(keys[:4])
    assert store.list("batches") == keys[4:]
    store.delete([])
    assert store.list("batches") == keys[4:]


def test_a_deleted_key_can_be_created_again(store: LogStore) -> None:
    store.create("a", b"1")
    store.delete(["a"])
    store.create("a", b"2")
    assert store.get("a") == b"2"


def test_an_object_of_a_folders_own_name_is_none(s3: S3Settings) -> None:
    """S3's console and Hadoop leave them, also in a copy of a log: a driver would take them for somebody's."""
    assert s3.endpoint is not None
    client = s3_client(s3.endpoint)
    for key in ("marked/", "marked/commits/", "marked/commits/000000000000.json.gz"):
        client.put_object(Bucket="lake", Key=key, Body=b"")
    store = ObstoreLogStore.at(StoreSettings(LakePath.parse("s3a://lake/marked"), s3))
    assert store.list("commits") == ["commits/000000000000.json.gz"]
    assert "" not in store.list("")
