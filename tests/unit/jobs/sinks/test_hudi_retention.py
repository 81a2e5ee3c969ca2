"""What archiving of a Hudi table goes by; Hudi's client is played, since it is asked for nothing else here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import StructType

from lakestream.sinks.hudi import HudiSettings
from lakestream.sinks.hudi import sink as sink_module
from lakestream.sinks.hudi.client import HudiClient
from lakestream.sinks.hudi.metaclient import HudiTable
from lakestream.sinks.hudi.sink import HudiSink
from lakestream_api import Operation, TableType


class Hudi:
    """A client of Hudi's, with the options that it was told."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {}
        self.archived_by: list[dict[str, str]] = []

    def getConfig(self) -> Hudi:  # noqa: N802 - Hudi's name
        return self

    def setValue(self, name: str, value: str) -> None:  # noqa: N802 - Hudi's name
        self.options[name] = value

    def clean(self) -> None: ...

    def archive(self) -> None:
        self.archived_by.append(dict(self.options))


class Late:
    """Files that come late: to look for them fails, but for when the table is opened."""

    looks = 0

    def sweep(self) -> None:
        self.looks += 1
        if self.looks > 1:
            raise RuntimeError("503")

    def shown_since(self, since: datetime) -> datetime:
        return since


def test_archiving_keeps_what_is_to_be_kept_where_cleaning_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else all but a few commits are archived, and cannot be asked for, though their files are there."""
    since: list[datetime] = []

    def commits_since(_: HudiTable, time: datetime) -> int:
        since.append(time)
        return 500

    hudi = Hudi()

    def client(table: HudiTable, *_: Any) -> HudiClient:
        made = object.__new__(HudiClient)
        vars(made).update(_table=table, _client=hudi)
        return made

    rollbacks = SimpleNamespace(look=list, instants=set(), newest=None, late=Late())
    monkeypatch.setattr(HudiTable, "commits_since", commits_since)
    monkeypatch.setattr(HudiTable, "pending_clusterings", lambda _: [])
    monkeypatch.setattr(sink_module, "HudiClient", client)
    monkeypatch.setattr(sink_module, "Rollbacks", lambda _: rollbacks)
    settings = HudiSettings(
        path="file:///lake/orders",
        table="orders",
        record_key=("order_id",),
        table_type=TableType.COPY_ON_WRITE,
        operation=Operation.INSERT,
        retain=timedelta(minutes=15),
    )
    sink = HudiSink(MagicMock(), settings)
    sink._options = {}
    sink._open(StructType())
    began = datetime.now(UTC)
    assert sink._services is not None
    sink._services.committed()
    sink.finish_services()
    assert [(one.name, one.failed, one.completed) for one in sink.services] == [
        ("cleaning", 1, 0),
        ("archiving", 0, 1),
    ]
    assert [options.get("hoodie.keep.min.commits") for options in hudi.archived_by] == ["510"]
    assert [began - time >= timedelta(minutes=14) for time in since] == [True]
    sink._services.close()
