from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakestream_api import TableType
from lakestream_demo.errors import SettingError
from lakestream_demo.settings import DemoSettings, Lake, Table

SETTINGS = DemoSettings(
    out=Path("/somewhere"),
    duration=timedelta(seconds=60),
    events=2_500,
    shards=4,
    users=2_000,
    table=Table.MOR,
    lake=Lake.LOCAL,
)


def test_short_names_stand_for_hudi_table_types() -> None:
    assert Table("cow").table_type is TableType.COPY_ON_WRITE
    assert Table("mor").table_type is TableType.MERGE_ON_READ


@pytest.mark.parametrize("folder", ["/my work/.demo", "/it's/.demo", "/100%/.demo", "/a[1]/.demo", "/a#b/.demo"])
def test_a_folder_that_hudi_cannot_name_is_refused_before_anything_starts(folder: str) -> None:
    with pytest.raises(SettingError, match="Hudi's SQL cannot name") as caught:
        replace(SETTINGS, out=Path(folder))
    assert "--out" in caught.value.advice


def test_letters_of_any_language_may_be_in_the_folder() -> None:
    assert replace(SETTINGS, out=Path("/home/jürgen/Entwürfe_2/.demo")).out.name == ".demo"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"duration": timedelta(seconds=4)}, "DURATION is 4"),
        ({"duration": timedelta(hours=2)}, "DURATION is 7200"),
        ({"shards": 0}, "SHARDS is 0"),
        ({"shards": 101}, "SHARDS is 101"),
        ({"users": 0}, "users is 0"),
        ({"events": 0}, "EVENTS is 0"),
    ],
)
def test_a_value_out_of_bounds_is_named(changed: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        replace(SETTINGS, **changed)  # type: ignore[arg-type]
    assert caught.value.advice.startswith("Choose from ")


def test_more_than_the_shards_take_is_allowed_but_said() -> None:
    assert replace(SETTINGS, events=4_000).warning is None
    warning = replace(SETTINGS, events=4_001).warning
    assert warning is not None
    assert "4,001 events/s are more than 4 shards take (4,000/s)" in warning
