"""`lakestream backfill --from … --to …`: which span is meant, what is refused, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lakestream.backfill.span import span_of, unread_of
from lakestream.errors import RequestError
from lakestream.kinesis import StreamSummary
from lakestream.log import ObstoreLogStore, RequestState, current_request
from lakestream.main import app
from lakestream.model import BatchCommit, Loss, Span, SpanProgress, Taken, Trim
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import DOCUMENT, ORDERS, log_at, plan_of

NOW = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
BEGUN = NOW - timedelta(hours=3)
"""When the writer has begun to read the stream."""


class Kinesis:
    """What the command asks of it."""

    stream = StreamSummary(ORDERS.stream_arn, ORDERS.stream_created_at, timedelta(hours=24), 1, False, True)

    def __init__(self, settings: object) -> None:
        assert settings

    def describe_stream_summary(self) -> StreamSummary:
        return self.stream

    def now(self) -> datetime:
        return NOW

    def close(self) -> None: ...


class Lake:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.document = folder / "orders.yaml"
        self.document.write_text(DOCUMENT.format(lake=folder))
        for name in ("json", "hudi"):
            (folder / name).mkdir()

    def edit(self, old: str, new: str) -> None:
        assert old in self.document.read_text()
        self.document.write_text(self.document.read_text().replace(old, new))

    def backfill(self, *arguments: str, writer: str = "hudi") -> Result:
        options = ["-f", str(self.document), "--writer", writer]
        return CliRunner().invoke(app, ["backfill", *arguments, *options])

    def refused(self, *arguments: str, writer: str = "hudi") -> str:
        done = self.backfill(*arguments, writer=writer)
        assert done.exit_code == 3, done.output
        assert self.state(writer) is None or done.stdout == ""
        return done.stderr

    def span(self, writer: str = "hudi") -> Span:
        state = self.state(writer)
        assert state is not None
        assert state.request.span is not None
        return state.request.span

    def state(self, writer: str) -> RequestState | None:
        return current_request(self.store(writer))

    def store(self, writer: str) -> ObstoreLogStore:
        place = LakePath.parse(str(self.folder / "checkpoint" / writer))
        return ObstoreLogStore.at(StoreSettings(place, S3Settings("eu-west-1")))

    def committed(self, writer: str, taken: Taken | None = None, read_from: datetime | None = BEGUN) -> None:
        log = log_at(self.folder / "checkpoint" / writer)
        last = log.last_commit()
        plan = plan_of(0 if last is None else last.batch + 1, log.epoch)
        trim = Trim(timedelta(hours=24), NOW - timedelta(hours=25))
        plan = replace(plan, taken=taken, read_from=read_from, trim=trim)
        log.put_plan(plan)
        log.put_commit(BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr("lakestream.kinesis.HttpKinesisClient", Kinesis)
    return Lake(tmp_path)


def hours(since: float, until: float) -> Span:
    """So many hours ago."""
    return Span(NOW - timedelta(hours=since), NOW - timedelta(hours=until))


def test_a_span_is_asked_for_and_it_is_told_how_far_that_is(lake: Lake) -> None:
    lake.committed("hudi")
    done = lake.backfill("--from", "2026-02-01T02:00Z", "--to", "2 hours ago")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (
        "backfill 1: what arrived in orders from 2026-02-01 02:00:00 to 2026-02-01 10:00:00 UTC. The writer's driver "
        f"reads it between its batches; if none runs: lakestream ingest -f {lake.document} --writer hudi\n"
    )
    assert done.stderr == ""
    assert lake.span() == hours(10, 2), "a table kept by key may have read it before"
    assert "has taken 0 records; the writer's driver goes on with it" in lake.backfill("status").stdout
    assert "One goes on at a time" in lake.refused("--from", "1 hour ago")
    assert "backfill 1 is cancelled" in lake.backfill("cancel").stdout
    lake.committed("hudi", Taken(1, 0, 0, SpanProgress(records=3)))
    assert lake.backfill("status").stdout == "backfill 1 was cancelled: 3 records were taken\n"
    assert "backfill 2: " in lake.backfill("--from=1 hour ago").stdout, "up to now"
    assert lake.span() == hours(1, 0)


def test_what_was_skipped_is_told(lake: Lake) -> None:
    lake.committed("hudi")
    lake.edit("region: eu-west-1", "region: eu-west-1, onDataLoss: skip")
    done = lake.backfill("--from", "3 days ago", "--to", "2 hours ago")
    assert "What arrived before 2026-01-31 12:00:01 UTC may be trimmed, and is skipped then" in done.stderr
    lost = Loss("shardId-0", None, None, NOW, NOW)
    lake.committed("hudi", Taken(1, 1, 1, SpanProgress(records=3, lost=(lost,))))
    assert lake.backfill("status").stdout.splitlines() == [
        "backfill 1 is done: 2026-01-29 12:00:00 to 2026-02-01 10:00:00 UTC, 3 records",
        f"records may have been trimmed before they were read, and were skipped: {lost}",
    ]


def test_what_is_trimmed_is_refused_where_nothing_may_be_lost(lake: Lake) -> None:
    refused = lake.refused("--from", "24 hours ago")
    assert "the stream keeps records for 24 h: what arrived before 2026-01-31 12:00:01 UTC may be gone" in refused
    assert (
        "Give --from 2026-01-31T12:06Z; or, for all that is left, set spec.source.kinesis.onDataLoss: skip" in refused
    )
    assert "backfill 1" in lake.backfill("--from", "2026-01-31T12:06Z").stdout


def test_a_span_of_which_nothing_is_left_is_refused(lake: Lake) -> None:
    lake.edit("region: eu-west-1", "region: eu-west-1, onDataLoss: skip")
    assert "none may be left" in lake.refused("--from", "3 days ago", "--to", "2 days ago")


def test_a_retention_that_was_raised_brings_nothing_back(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.committed("hudi")
    monkeypatch.setattr(Kinesis, "stream", replace(Kinesis.stream, retention=timedelta(hours=200)))
    assert "for 200 h: what arrived before 2026-01-31 12:00:01 UTC may be gone" in lake.refused("--from", "3 days ago")


def test_of_a_young_stream_nothing_is_trimmed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kinesis, "stream", replace(Kinesis.stream, created_at=NOW - timedelta(hours=1)))
    assert "backfill 1" in lake.backfill("--from", "3 days ago").stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["--from", "3h ago", "--to", "4h ago"],
            "--from 3h ago is 2026-02-01 09:00:00 UTC, and not before --to 4h ago",
        ),
        (
            ["--from", "1h ago", "--to", "2026-02-01T12:01Z"],
            "in Kinesis it is 2026-02-01 12:00:00 UTC: give a time that",
        ),
        (["--from", "batch 7"], "--from batch 7 names a commit of the table: give a time at which records arrived"),
        (["--from", "9999-12-31T23:59:59.9996Z"], "--from 9999-12-31T23:59:59.9996Z: year 10000 is out of range"),
        (["--from", "soon"], "--from: 'soon' is no moment"),
    ],
)
def test_what_is_no_span_is_named(lake: Lake, arguments: list[str], why: str) -> None:
    assert why in lake.refused(*arguments)


def test_what_is_no_time_is_told_before_kinesis_is_asked(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakestream.kinesis.HttpKinesisClient", lambda settings: pytest.fail("it is asked"))
    assert "--to: 'soon' is no moment" in lake.refused("--from", "3h ago", "--to", "soon")


def test_times_are_utc_without_an_offset() -> None:
    assert span_of("2026-02-01 10:00", "2026-02-01T12:00+01:00", NOW) == hours(2, 1)
    with pytest.raises(RequestError):
        span_of("now", "now", NOW)


def test_a_span_ends_where_an_iterator_of_kinesis_would_begin() -> None:
    """Which has milliseconds."""
    assert span_of("2026-02-01T10:00:00.000499Z", "2026-02-01T10:00:00.0006Z", NOW) == Span(
        NOW - timedelta(hours=2), NOW - timedelta(hours=2) + timedelta(milliseconds=1)
    )
    assert unread_of(hours(8, 0), BEGUN + timedelta(microseconds=400)) == hours(8, 3)


class TestTableThatKeepsEveryRow:
    """What the writer has read is there: it is left out."""

    def test_what_was_before_the_writer_is_taken(self, lake: Lake) -> None:
        lake.committed("json")
        assert lake.backfill("--from", "8 hours ago", "--to", "3 hours ago", writer="json").stderr == ""
        assert lake.span("json") == hours(8, 3)

    def test_what_it_has_read_is_left_out(self, lake: Lake) -> None:
        lake.committed("json")
        done = lake.backfill("--from", "8 hours ago", writer="json")
        assert "from 2026-02-01 04:00:00 to 2026-02-01 09:00:00 UTC" in done.stdout
        assert "What arrived from 2026-02-01T09:00:00Z on is left out" in done.stderr
        assert lake.span("json") == hours(8, 3)

    def test_unless_it_may_come_twice(self, lake: Lake) -> None:
        lake.committed("json")
        done = lake.backfill("--from", "8 hours ago", "--again", writer="json")
        assert "What arrived from 2026-02-01T09:00:00Z on, the writer has read itself, and the table has it twice" in (
            done.stderr
        )
        assert lake.span("json") == hours(8, 0)
        lake.committed("json", Taken(1, 1, 1, SpanProgress(records=5)))
        done = lake.backfill("--from", "2 hours ago", "--again", writer="json")
        assert "What arrived from 2026-02-01T10:00:00Z on, the writer" in done.stderr, "all of it"
        lake.committed("json", Taken(2, 1, 1, SpanProgress(records=5)))
        assert lake.backfill("--from", "8 hours ago", "--to", "3h ago", "--again", writer="json").stderr == ""

    @pytest.mark.parametrize("again", [(), ("--again",)])
    def test_from_when_on_is_told_as_to_takes_it(self, lake: Lake, again: tuple[str, ...]) -> None:
        """To the millisecond: with less, `--to` would leave out what arrived within that second before it."""
        lake.committed("json", read_from=BEGUN + timedelta(milliseconds=20))
        done = lake.backfill("--from", "8 hours ago", *again, writer="json")
        assert "What arrived from 2026-02-01T09:00:00.020Z on" in done.stderr

    def test_if_it_has_read_all_of_it_nothing_is_left(self, lake: Lake) -> None:
        lake.committed("json")
        refused = lake.refused("--from", "2 hours ago", writer="json")
        assert "the writer has read the stream from 2026-02-01 09:00:00 UTC on, so all of the span" in refused
        assert "give --again" in refused

    @pytest.mark.parametrize("has_begun", [True, False])
    def test_if_nobody_knows_what_it_has_read_it_is_refused(self, lake: Lake, has_begun: bool) -> None:
        if has_begun:
            lake.committed("json", read_from=None)
        assert "nobody knows from where on the writer has read the stream" in lake.refused(
            "--from", "8 hours ago", writer="json"
        )

    def test_a_span_is_taken_once(self, lake: Lake) -> None:
        lake.committed("json")
        lake.backfill("--from", "8 hours ago", "--to", "6 hours ago", writer="json")
        lake.committed("json", Taken(1, 1, 1, SpanProgress(records=5)))
        refused = lake.refused("--from", "7 hours ago", "--to", "5 hours ago", writer="json")
        assert (
            "backfill 1 of 2026-02-01 12:00:00 UTC was for 2026-02-01 04:00:00 to 2026-02-01 06:00:00 UTC (" in refused
        )
        assert "backfill 2" in lake.backfill("--from", "6 hours ago", "--to", "5 hours ago", writer="json").stdout
        lake.committed("json", Taken(2, 0, 0, SpanProgress(records=1)))
        assert "backfill 1 of" in lake.refused("--from", "7 hours ago", "--to", "6 hours ago", writer="json")
        assert "backfill 2 was cancelled: 1 records were taken" in lake.refused("--from", "6h ago", writer="json")
        assert "backfill 3" in lake.backfill("--from", "7 hours ago", "--again", writer="json").stdout

    def test_but_for_one_of_which_nothing_was_taken(self, lake: Lake) -> None:
        lake.committed("json")
        lake.backfill("--from", "8 hours ago", "--to", "6 hours ago", writer="json")
        lake.committed("json", Taken(1, 0, 0, None))
        assert "backfill 2" in lake.backfill("--from", "8 hours ago", writer="json").stdout

    def test_of_one_before_the_newest_nobody_knows_what_it_has_taken(self, lake: Lake) -> None:
        lake.committed("json", read_from=BEGUN + timedelta(milliseconds=20))
        lake.backfill("--from", "8 hours ago", "--to", "6 hours ago", writer="json")
        lake.committed("json", Taken(1, 0, 0, None))
        lake.backfill("--from", "10 hours ago", "--to", "9 hours ago", writer="json")
        lake.committed("json", Taken(2, 1, 1, SpanProgress(records=5)), read_from=BEGUN + timedelta(milliseconds=20))
        refused = lake.refused("--from", "8 hours ago", writer="json")
        assert "backfill 1 of " in refused
        assert "nobody knows any more what it has taken" in refused
        assert "give --again with --to 2026-02-01T09:00:00.020Z" in refused, "behind it rows would be there twice"
        done = lake.backfill("--from", "8 hours ago", "--to", "2026-02-01T09:00:00.020Z", "--again", writer="json")
        assert done.stderr == ""
        assert lake.span("json") == Span(NOW - timedelta(hours=8), BEGUN + timedelta(milliseconds=20))

    def test_one_that_ends_before_what_the_writer_has_read_needs_no_other_end(self, lake: Lake) -> None:
        lake.committed("json")
        lake.backfill("--from", "8 hours ago", "--to", "6 hours ago", writer="json")
        lake.committed("json", Taken(1, 1, 1, SpanProgress(records=5)))
        refused = lake.refused("--from", "8 hours ago", "--to", "3 hours ago", writer="json")
        assert "give --again\n" in refused
        assert "give --again with --to 2026-02-01T09:00:00Z\n" in lake.refused("--from", "8h ago", writer="json")


def test_the_deletes_that_a_table_forgets_are_told(lake: Lake) -> None:
    lake.edit("orderingField: version", "orderingField: version, deleteWhen: 'true', cleaning: {retainHours: 24}")
    assert "the table remembers deletes for 1 h: " in lake.refused("--from", "61 minutes ago")
    assert "backfill 1: " in lake.backfill("--from", "1 hour ago").stdout, "it remembers them all"
    lake.committed("hudi", Taken(1, 1, 1))
    assert "backfill 2: " in lake.backfill("--from", "2 hours ago", "--despite-deletes").stdout


def test_the_stream_of_another_checkpoint_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.committed("hudi")
    monkeypatch.setattr(Kinesis, "stream", replace(Kinesis.stream, created_at=NOW))
    done = lake.backfill("--from", "1 hour ago")
    assert "was deleted and created again" in done.stderr
    monkeypatch.setattr(Kinesis, "stream", replace(Kinesis.stream, arn="arn:another"))
    assert "belongs to the stream arn:aws" in lake.backfill("--from", "1 hour ago").stderr
    assert lake.state("hudi") is None


def test_files_and_spans_have_a_help_of_their_own(lake: Lake) -> None:
    assert "--despite-deletes" in CliRunner().invoke(app, ["backfill", "span", "--help"], color=False).output
    assert "status" in CliRunner().invoke(app, ["backfill", "--help"]).output
