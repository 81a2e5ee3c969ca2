"""What a checkpoint refuses, and what it says then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import orjson
import pytest
from obstore.store import MemoryStore

from lakestream.errors import CorruptLogError, IdentityMismatchError, InvalidValueError, StreamRecreatedError
from lakestream.log import Identity, ObstoreLogStore
from lakestream.log.identity import claim_identity
from lakestream.testing.logs import ORDERS


@pytest.fixture
def store() -> ObstoreLogStore:
    return ObstoreLogStore(MemoryStore())


def test_the_same_identity_gets_the_same_checkpoint(store: ObstoreLogStore) -> None:
    assert claim_identity(store, ORDERS) == claim_identity(store, replace(ORDERS, settings=dict(ORDERS.settings)))


def test_two_checkpoints_have_different_ids(store: ObstoreLogStore) -> None:
    assert claim_identity(store, ORDERS) != claim_identity(ObstoreLogStore(MemoryStore()), ORDERS)


@pytest.mark.parametrize("key", ["commits/000000000007.json.gz", "batches/000000000000.json.gz", "manifests/x"])
def test_a_log_whose_identity_is_gone_is_refused_and_not_claimed_anew(store: ObstoreLogStore, key: str) -> None:
    store.create(key, b"of another stream, perhaps")
    with pytest.raises(CorruptLogError, match=f"{key}, and no identity.json"):
        claim_identity(store, ORDERS)
    with pytest.raises(CorruptLogError):
        claim_identity(store, ORDERS)


def test_a_driver_that_began_in_between_is_no_corruption(store: ObstoreLogStore) -> None:
    class Late(ObstoreLogStore):
        """Another driver has its identity and a plan there once this one has found no identity."""

        def list(self, folder: str, after: str | None = None) -> list[str]:
            if not store.list("batches"):
                claimed.append(claim_identity(store, ORDERS))
                store.create("batches/000000000000.json.gz", b"")
            return store.list(folder, after)

        def get(self, key: str) -> bytes:
            return store.get(key)

        def create(self, key: str, body: bytes) -> None:
            store.create(key, body)

    claimed: list[UUID] = []
    assert [claim_identity(Late(MemoryStore()), ORDERS)] == claimed


def test_every_changed_setting_is_named_with_both_values(store: ObstoreLogStore) -> None:
    claim_identity(
        store, replace(ORDERS, settings={"recordKey": ("a", "b"), "tableType": "COPY_ON_WRITE", "same": "x"})
    )
    changed = replace(ORDERS, settings={"recordKey": ("a",), "index": "bucket", "same": "x"})
    with pytest.raises(IdentityMismatchError) as caught:
        claim_identity(store, changed)
    message = str(caught.value)
    assert "recordKey: was [a, b], now [a]" in message
    assert "tableType: was 'COPY_ON_WRITE', now not set" in message
    assert "index: was not set, now 'bucket'" in message
    assert "same:" not in message
    assert "another spec.checkpoint" in message


def test_a_list_of_one_is_not_a_string(store: ObstoreLogStore) -> None:
    claim_identity(store, replace(ORDERS, settings={"recordKey": "a"}))
    with pytest.raises(IdentityMismatchError, match=r"was 'a', now \[a\]"):
        claim_identity(store, replace(ORDERS, settings={"recordKey": ("a",)}))


def test_another_stream_is_refused(store: ObstoreLogStore) -> None:
    claim_identity(store, ORDERS)
    with pytest.raises(IdentityMismatchError, match=r"stream/orders, not to .*stream/returns"):
        claim_identity(store, replace(ORDERS, stream_arn=ORDERS.stream_arn.replace("orders", "returns")))


def test_a_recreated_stream_is_refused(store: ObstoreLogStore) -> None:
    claim_identity(store, ORDERS)
    recreated = replace(ORDERS, stream_created_at=ORDERS.stream_created_at + timedelta(seconds=1))
    with pytest.raises(StreamRecreatedError, match="deleted and created again"):
        claim_identity(store, recreated)


def test_a_creation_time_without_zone_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="stream_created_at"):
        Identity(ORDERS.stream_arn, ORDERS.stream_created_at.replace(tzinfo=None), {})


@pytest.mark.parametrize("edit", [("settings", None), ("checkpoint", 7), ("streamCreatedAt", [])])
def test_an_identity_that_was_edited_by_hand_is_named(store: ObstoreLogStore, edit: tuple[str, object]) -> None:
    claim_identity(store, ORDERS)
    fields = orjson.loads(store.get("identity.json")) | dict([edit])
    store.delete(["identity.json"])
    store.create("identity.json", orjson.dumps(fields))
    with pytest.raises(CorruptLogError, match=r"identity\.json: identity document is damaged"):
        claim_identity(store, ORDERS)


def test_a_damaged_identity_is_named(store: ObstoreLogStore) -> None:
    store.create("identity.json", b"{")
    with pytest.raises(CorruptLogError, match=r"identity\.json"):
        claim_identity(store, ORDERS)
