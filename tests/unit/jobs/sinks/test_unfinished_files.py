"""Files in a folder that a kill has left unfinished, where no reader looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.errors import LakeStreamError
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.objects import discard_unfinished, put_all
from lakestream.storage import LakePath, S3Settings, StoreSettings

CHECKPOINT = "5e0c11aa-1111-4222-8333-444455556666"
LEFT = (
    "b000000000007-00000-5e0c11aa.json.gz-0123456789ab#1",
    "b000000000007-00003-5e0c11aa-0badcafe.json.gz-0123456789ab",
    "b000000000002-00000-5e0c11aa.json-0123456789ab#1",
)
OTHERS = ("b000000000008-00000-5e0c11aa.json-0123456789ab#1", "b000000000007-00000-ffffffff.json-0123456789ab#1")


def at(folder: Path) -> StoreSettings:
    return StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1"))


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_those_of_this_batch_and_of_earlier_ones_are_deleted(tmp_path: Path) -> None:
    discard_unfinished(at(tmp_path), BatchRef(7, CHECKPOINT))
    unfinished = tmp_path / "_lakestream/unfinished"
    unfinished.mkdir(parents=True)
    for name in (*LEFT, *OTHERS):
        (unfinished / name).touch()
    discard_unfinished(at(tmp_path), BatchRef(7, CHECKPOINT))
    assert there(unfinished) == {*OTHERS}


def test_a_file_that_is_put_is_in_its_place_alone(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        put_all(at(tmp_path), {"dt=a%2Fb/x.json": content, "y.json": content})
        assert there(tmp_path) == {"dt=a%2Fb/x.json", "y.json"}
        assert (tmp_path / "dt=a%2Fb/x.json").read_bytes() == content


def test_of_a_file_that_cannot_be_put_in_its_place_none_is_left(tmp_path: Path) -> None:
    (tmp_path / "dt=a").touch()
    for _ in range(2):
        with pytest.raises(LakeStreamError, match="put dt=a/x"):
            put_all(at(tmp_path), {"dt=a/x.json": b"whole"})
    assert there(tmp_path) == {"dt=a"}
