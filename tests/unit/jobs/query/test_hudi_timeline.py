"""Hudi's timeline and properties, from the names and texts that Hudi 1.2.0 writes."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lakestream.query.properties import parse_properties
from lakestream.query.timeline import Instant, Listed, State, Timeline, name_of, time_of

NAMES = [
    "20260131120000001.deltacommit.requested",
    "20260131120000001.deltacommit.inflight",
    "20260131120000001_20260131120001001.deltacommit",
    "20260131120002001.compaction.requested",
    "20260131120002001.compaction.inflight",
    "20260131120002001_20260131120003001.commit",
    "20260131120004001.deltacommit.requested",
    "20260131120004001.deltacommit.inflight",
    "20260131120004001_20260131120005001.deltacommit",
    "20260131120006001.compaction.requested",
    "20260131120007001.deltacommit.requested",
    "20260131120007001.deltacommit.inflight",
    "20260131120008001.clean.requested",
    "20260131120008001.clean.inflight",
    "20260131120008001_20260131120009001.clean",
    "history",
    ".20260131120008001_20260131120009001.clean.crc",
]


MODIFIED = datetime(2026, 1, 31, 12, 0, 9, tzinfo=UTC)


def timeline_of(names: list[str], *, merges_on_read: bool, layout: int = 2, undone: tuple[str, ...] = ()) -> Timeline:
    listed = [Listed(name, MODIFIED) for name in names]
    return Timeline.of(listed, merges_on_read=merges_on_read, layout=layout, undone=frozenset(undone))


def test_what_has_become_of_each_instant() -> None:
    timeline = timeline_of(NAMES, merges_on_read=True)
    assert [one.requested[-6:] for one in timeline.batches] == ["000001", "004001"]
    assert [one.requested[-6:] for one in timeline.compactions] == ["002001"]
    assert [(one.action, one.state) for one in timeline.pending] == [
        ("compaction", State.REQUESTED),
        ("deltacommit", State.INFLIGHT),
    ]
    (clean,) = timeline.completed("clean")
    assert clean.file == "20260131120008001_20260131120009001.clean"
    assert clean.completed_at == datetime(2026, 1, 31, 12, 0, 9, 1000, tzinfo=UTC)


def test_a_commit_of_a_copy_on_write_table_is_a_batch() -> None:
    names = [
        "20260131120000001.commit.requested",
        "20260131120000001.inflight",
        "20260131120000001_20260131120001001.commit",
    ]
    (batch,) = timeline_of(names, merges_on_read=False).batches
    assert batch == Instant("20260131120000001", "commit", State.COMPLETED, "20260131120001001", names[-1])
    (pending,) = timeline_of(names[:2], merges_on_read=False).pending
    assert (pending.action, pending.state) == ("commit", State.INFLIGHT)


def test_in_layout_1_the_time_of_the_object_is_that_of_its_completion() -> None:
    names = [
        "hoodie.properties",
        *(f"20260131120000001.deltacommit{state}" for state in (".requested", ".inflight", "")),
        *(f"20260131120002001{state}" for state in (".compaction.requested", ".compaction.inflight", ".commit")),
        # S3 tells times to the second.
        *(f"20260131120009500.deltacommit{state}" for state in (".requested", ".inflight", "")),
        *(f"20260131120010001{state}" for state in (".commit.requested", ".inflight")),
    ]
    timeline = timeline_of(names, merges_on_read=True, layout=1)
    assert [(one.requested[-6:], one.completed and one.completed[-6:]) for one in timeline.batches] == [
        ("000001", "009000"),
        ("009500", "009500"),
    ]
    assert [one.requested[-6:] for one in timeline.compactions] == ["002001"]
    assert [(one.action, one.state) for one in timeline.pending] == [("commit", State.INFLIGHT)]


def test_what_was_rolled_back_is_no_commit_even_if_it_landed_later() -> None:
    undone = ("20260131120004001",)
    timeline = timeline_of(NAMES, merges_on_read=True, undone=undone)
    assert [one.requested[-6:] for one in timeline.batches] == ["000001"]


@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - as hypothesis wants it
def test_names_of_instants_are_times_to_the_millisecond(time: datetime) -> None:
    time = time.replace(tzinfo=UTC, microsecond=time.microsecond // 1000 * 1000)
    assert time_of(name_of(time)) == time


def test_properties_as_hudi_writes_them() -> None:
    text = (
        "#Updated at 2026-11-22T08:27:45Z\n#Sun Nov 22 08:27:45 UTC 2026\n"
        "hoodie.table.type=MERGE_ON_READ\nlakestream.layout=bucket\\:4\nempty=\nspaced = value \n"
        'schema={"type"\\:"record","doc"\\:"a\\\\\\\\b \\u00fc"}\nno value\n'
    )
    assert parse_properties(text) == {
        "hoodie.table.type": "MERGE_ON_READ",
        "lakestream.layout": "bucket:4",
        "empty": "",
        "spaced": "value",
        "schema": '{"type":"record","doc":"a\\\\b ü"}',
    }


@given(st.permutations(["20260131120001.deltacommit", "20260131120001.savepoint", "20260131120001.savepoint.inflight"]))
def test_a_savepoint_hides_no_commit_of_its_name(names: list[str]) -> None:
    for layout, end in ((1, ""), (2, "_20260131120009001")):
        given = [name.replace("120001", f"120001001{end if name.count('.') == 1 else ''}") for name in names]
        timeline = timeline_of(given, merges_on_read=True, layout=layout)
        assert [one.action for one in timeline.batches] == ["deltacommit"]
        assert [one.state for one in timeline.completed("savepoint")] == [State.COMPLETED]
        assert timeline.pending == ()


def test_instants_of_old_releases_have_no_milliseconds() -> None:
    names = ["20210131120000.commit.requested", "20210131120000.inflight", "20210131120000.commit"]
    timeline = timeline_of([*names, "20260131120000001.commit"], merges_on_read=False, layout=1)
    assert [one.requested for one in timeline.batches] == ["20210131120000", "20260131120000001"]
    assert timeline.batches[0].requested_at == datetime(2021, 1, 31, 12, tzinfo=UTC)
