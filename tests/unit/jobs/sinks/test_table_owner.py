"""Whose a table is: the first checkpoint that claims it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from uuid import UUID, uuid4

import pytest

from lakestream.errors import CorruptLogError, TableGoneError, TableOwnedError
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.storage import LakePath, S3Settings, StoreSettings

ORDERS = Owner(UUID(int=1), "s3a://lake/_checkpoints/orders/hudi", "lake/orders", "hudi")
OTHER = Owner(UUID(int=2), "s3a://lake/_checkpoints/returns/hudi", "lake/returns", "hudi")


@pytest.fixture
def place(tmp_path: Path) -> StoreSettings:
    return table_of(tmp_path) / ".hoodie" / "lakestream"


def table_of(folder: Path) -> StoreSettings:
    return StoreSettings(LakePath.parse(str(folder / "table")), S3Settings("eu-west-1"))


def claim_of(place: StoreSettings, owner: Owner) -> TableClaim:
    return TableClaim(table_of(Path(str(place.path)).parents[2]), place, owner)


def claim_table(place: StoreSettings, owner: Owner) -> None:
    claim_of(place, owner).take(wrote=False)


def test_a_table_belongs_to_the_first_who_claims_it_and_to_its_every_restart(place: StoreSettings) -> None:
    claim_table(place, ORDERS)
    claim_table(place, ORDERS)
    # A LakeStream that was given another name, and a checkpoint that was moved, are the same.
    claim_table(place, replace(ORDERS, lakestream="orders", place="/moved"))
    with pytest.raises(TableOwnedError):
        claim_table(place, OTHER)
    claim_table(place, ORDERS)


def test_who_is_refused_learns_of_both_and_what_to_do(place: StoreSettings) -> None:
    claim_table(place, ORDERS)
    with pytest.raises(TableOwnedError) as refused:
        claim_table(place, OTHER)
    message = str(refused.value)
    for part in (
        "the table belongs to the writer hudi of the LakeStream lake/orders",
        f"checkpoint {ORDERS.checkpoint} at {ORDERS.place}, as {place.path}/owner says",
        "this is the writer hudi of the LakeStream lake/returns",
        f"checkpoint {OTHER.checkpoint} at {OTHER.place}",
        "give this one another path",
        "delete the table as well; or, to add to it, that object",
    ):
        assert part in message


def test_what_the_message_says_to_do_is_enough(place: StoreSettings) -> None:
    claim_table(place, ORDERS)
    (Path(str(place.path)) / "owner").unlink()
    claim_table(place, OTHER)


def test_of_many_who_claim_a_new_table_at_once_one_gets_it(place: StoreSettings) -> None:
    def claim(owner: Owner) -> bool:
        try:
            claim_table(place, owner)
        except TableOwnedError:
            return False
        return True

    owners = [replace(ORDERS, checkpoint=uuid4()) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, owners)) == 1


def test_an_owner_that_cannot_be_read_is_named(place: StoreSettings) -> None:
    claim_table(place, ORDERS)
    path = Path(str(place.path)) / "owner"
    path.write_bytes(b"{}")
    with pytest.raises(CorruptLogError, match=r"table/\.hoodie/lakestream/owner: not a owner document"):
        claim_table(place, ORDERS)


def test_a_table_that_vanishes_or_is_somebody_elses_is_noticed(place: StoreSettings, tmp_path: Path) -> None:
    claim = claim_of(place, ORDERS)
    claim.take(wrote=False)
    claim.check()
    rmtree(tmp_path / "table")
    with pytest.raises(TableGoneError, match=r"table was deleted, .*owner with it.*delete the checkpoint as well"):
        claim.check()
    claim_table(place, OTHER)
    with pytest.raises(TableOwnedError, match="lake/returns"):
        claim.check()


def test_a_table_that_vanished_between_two_drivers_is_not_made_anew(place: StoreSettings, tmp_path: Path) -> None:
    claim = claim_of(place, ORDERS)
    claim.take(wrote=False)
    rmtree(tmp_path / "table")
    with pytest.raises(TableGoneError):
        claim.take(wrote=True)
    assert not (tmp_path / "table").exists() or not [*(tmp_path / "table").rglob("owner")]
    # As a release left it that did not write owners.
    (tmp_path / "table/dt=2026-01-31").mkdir(parents=True)
    (tmp_path / "table/dt=2026-01-31/a.parquet").touch()
    claim.take(wrote=True)
    claim.check()


@pytest.mark.parametrize("left", ["hoodie.properties", "hoodie.properties.backup", None])
def test_a_table_without_what_says_what_it_is_is_not_made_anew(
    place: StoreSettings, tmp_path: Path, left: str | None
) -> None:
    """As a deletion leaves it that was cut off: names go in their order. Hudi's own update leaves one of the two."""
    claim = replace(claim_of(place, ORDERS), proofs=(".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup"))
    claim.take(wrote=False)
    if left is None:
        (tmp_path / "table/dt=2026-01-31").mkdir()
        (tmp_path / "table/dt=2026-01-31/a.parquet").touch()
        for owner in (tmp_path / "table/.hoodie/lakestream/owner", None):
            with pytest.raises(
                TableGoneError, match=r"no \.hoodie/hoodie\.properties any more: it was deleted in part"
            ):
                claim.take(wrote=True)
            if owner:
                owner.unlink()
    else:
        (tmp_path / "table/.hoodie" / left).touch()
        claim.take(wrote=True)
