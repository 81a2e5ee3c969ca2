"""From a question to rows on the way out, by sources that are none."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lakestream.errors import LakeStreamError
from lakestream.query import answer
from lakestream.query.errors import FilesGoneError
from lakestream.query.form import Format
from lakestream.query.moments import Commit
from lakestream.query.question import Asked, Engine, Snapshot, SparkRun
from lakestream.query.target import Kind, Target
from lakestream.storage import LakePath, S3Settings, StoreSettings

ASKED = Asked(Snapshot(), None, None, datetime(2026, 1, 31, tzinfo=UTC))


class Cleaned:
    """A table of which files were removed while it was read."""

    engine = "none"
    about = "a table"

    @contextmanager
    def answered(self, sql: str | None, limit: int | None) -> Iterator[pa.RecordBatchReader]:
        yield pa.table({"a": [1]}).to_reader()

    def write(self, statement: str | None, limit: int | None, to: LakePath) -> int:
        Path(str(to), "part-0.parquet").write_bytes(b"rows")
        Path(str(to), "_SUCCESS").touch()
        return 1

    def require_kept(self) -> None:
        raise FilesGoneError("files were removed")


def place(folder: Path) -> StoreSettings:
    return StoreSettings(LakePath.parse(str(folder)), S3Settings(""))


@pytest.mark.parametrize("engine", [Engine.AUTO, Engine.SPARK])
def test_of_what_was_removed_meanwhile_there_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    monkeypatch.setattr(answer, "_native", lambda target, asked: Cleaned())
    monkeypatch.setattr(answer, "_spark", lambda target, asked, run: Cleaned())
    target, out = Target(Kind.HUDI, place(tmp_path), None), io.BytesIO()
    with pytest.raises(FilesGoneError):
        answer.answer(target, ASKED, engine, SparkRun(), Format.JSONL, out)
    assert out.getvalue() == b""


def test_an_answer_of_what_was_removed_meanwhile_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "_spark", lambda target, asked, run: Cleaned())
    target, to = Target(Kind.HUDI, place(tmp_path), None), place(tmp_path)
    with pytest.raises(FilesGoneError):
        answer.answer(target, ASKED, Engine.SPARK, SparkRun(to=to), Format.PARQUET, io.BytesIO())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("zone", ["UTC", "LOCAL", None])
@pytest.mark.parametrize("question", [Snapshot(), Snapshot(Commit("20260131120000000")), Snapshot(ASKED.now)])
def test_a_time_is_told_to_be_uncertain_where_instants_are_in_a_zone_that_nobody_knows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, zone: str | None, question: Snapshot
) -> None:
    (tmp_path / ".hoodie" / "timeline").mkdir(parents=True)
    told = "hoodie.timeline.layout.version=2\n" + (f"hoodie.table.timeline.timezone={zone}\n" if zone else "")
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(told)
    target = Target(Kind.HUDI, place(tmp_path), None)
    with suppress(LakeStreamError):
        answer.answer(target, replace(ASKED, question=question), Engine.NATIVE, SparkRun(), Format.JSONL, io.BytesIO())
    is_told = "are in the local time of who wrote them" in caplog.text
    assert is_told is (zone != "UTC" and isinstance(question.at, datetime))
