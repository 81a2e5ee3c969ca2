"""What is compared, under which load."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakestream_bench._counting_s3 import Counted, RequestKind, kind_of
from lakestream_bench.compare import arms, scenarios
from lakestream_bench.compare.arms import ARMS, JSON, Writer
from lakestream_bench.compare.queries import Kind, View, newest, queries
from lakestream_bench.compare.requests import BATCHES
from lakestream_bench.compare.scenarios import SCENARIOS
from lakestream_bench.compare.tables import Moment, TableCommit, moment_of, since_compaction
from lakestream_bench.compare.trial import document
from lakestream_bench.compare.truth import Subjects
from lakestream_bench.compare.usage import Change, change, is_data

DAY = datetime(2026, 1, 1, tzinfo=UTC)
ABOUT = Subjects("c-o1", "2026-01-02", 3)


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_every_arm_is_a_valid_lakestream(arm: arms.Arm) -> None:
    writer = document(arm, "file:///lake/table", "file:///lake/checkpoint", "us-east-1").writer(arm.name)
    assert (writer.json_files is not None) is (arm.writer is Writer.JSON)


def test_what_is_run_without_being_asked_for_exists() -> None:
    assert set(arms.MAIN) <= ARMS.keys()
    assert set(scenarios.MAIN) <= SCENARIOS.keys()


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_scenario_is_looked_at_before_and_behind_its_last_compaction(scenario: scenarios.Scenario) -> None:
    for size, last in ((1, 20), (2, 40), (10, 200)):
        scaled = scenario.scaled(size)
        looks = scaled.looks(compacts=True)
        assert {last, last + 1, scaled.batches} <= set(looks)
        assert looks == tuple(sorted(set(looks)))
        assert 2 <= looks[0] <= looks[-1] == scaled.batches


def test_a_table_that_is_not_compacted_is_looked_at_early_and_at_the_end() -> None:
    scenario = SCENARIOS["half-updates"]
    assert scenario.looks(compacts=False) == (5, 21)
    assert scenario.looks(compacts=True) == (5, 20, 21)


def test_a_long_run_is_looked_at_at_its_quarters_too() -> None:
    scenario = SCENARIOS["half-updates"].scaled(10)
    assert scenario.looks(compacts=False) == (5, 52, 105, 157, 210)
    assert scenario.looks(compacts=True) == (5, 52, 105, 157, 200, 201, 210)


def test_batches_are_of_three_sizes_and_their_number_grows_with_the_size() -> None:
    scenario = SCENARIOS["inserts"]
    assert scenario.sizes[:11] == (2_000, 800, 3_200, 2_000, 800, 3_200, 2_000, 800, 3_200, 2_000, 2_000)
    assert sum(scenario.sizes) == scenario.batches * scenario.rows
    assert scenario.scaled(2).batches == 2 * scenario.batches
    assert scenario.scaled(0.01).looks(compacts=True) == (2,)
    assert scenario.mix.inserts == 1.0


def test_a_load_without_batches_is_refused() -> None:
    with pytest.raises(ValueError, match="scenario x: it needs two batches"):
        scenarios.Scenario("x", "longevity", "", 0.5, batches=1)


def test_only_merge_on_read_is_asked_for_what_was_compacted() -> None:
    for arm in ARMS.values():
        kinds = [query.kind for query in queries(arm, ABOUT)]
        assert (Kind.READ_OPTIMIZED in kinds) is arm.merges_on_read
        assert len(kinds) == len(set(kinds))
    assert [query.may_lag for query in queries(ARMS["mor"], ABOUT) if query.view is View.STATE] == [False] * 4


def test_what_a_table_was_is_asked_by_three_questions() -> None:
    of_past = [query.kind for query in queries(ARMS["mor"], ABOUT) if query.asks_back]
    assert of_past == [Kind.INCREMENTAL, Kind.TIME_TRAVEL, Kind.CHANGES]


def test_readers_of_json_find_the_newest_version_themselves() -> None:
    sql = newest("events")
    assert "PARTITION BY dt, order_id ORDER BY version DESC" in sql
    assert "NOT (op = 'd')" in sql


FOUND = [
    TableCommit("001", "002", "deltacommit"),
    TableCommit("003", "006", "deltacommit"),
    # Planned before the commit that began at 005, and completed behind it.
    TableCommit("004", "008", "commit"),
    TableCommit("005", "007", "deltacommit"),
    TableCommit("009", "010", "deltacommit"),
]


def test_commits_behind_a_compaction_are_those_that_began_behind_it() -> None:
    assert since_compaction(FOUND) == 2
    assert since_compaction(FOUND[:2]) == 2
    assert since_compaction(FOUND[:3]) == 0


def test_the_moment_is_the_completion_of_the_batch_s_own_commit() -> None:
    assert moment_of(DAY, 2, ["001", "003", "005", "009"], FOUND) == Moment(DAY, "006", "003", 2)
    assert moment_of(DAY, 2, ["001"], []) == Moment(DAY, None, None, 2)
    # A writer that is not told its instants, the first of whose commits are archived.
    plain = [TableCommit(f"{n:03}", f"{n:03}", "commit") for n in range(5, 9)]
    assert moment_of(DAY, 6, [None] * 8, plain).completed == "006"


def test_what_was_written_and_deleted_is_told_from_two_listings() -> None:
    before = {"kept": (5, 1), "rewritten": (5, 1), "deleted": (7, 1)}
    after = {"kept": (5, 1), "rewritten": (5, 2), "new": (11, 2)}
    assert change(before, after) == Change(objects_written=2, bytes_written=16, objects_deleted=1)


def test_a_timeline_has_no_rows() -> None:
    assert is_data("dt=2026-01-01/.00000-1_1.log.1_0-1-1")
    assert is_data("dt=2026-01-01/b0.json.gz")
    assert not is_data(".hoodie/timeline/1.commit")
    assert not is_data("dt=2026-01-01/.hoodie_partition_metadata")


@pytest.mark.parametrize(
    ("method", "path", "query", "kind"),
    [
        ("GET", "/bucket", "list-type=2&prefix=a", RequestKind.LIST),
        ("GET", "/bucket/", "prefix=", RequestKind.LIST),
        ("GET", "/bucket", "location", RequestKind.GET),
        ("GET", "/bucket/key", "", RequestKind.GET),
        ("HEAD", "/bucket/key", "", RequestKind.HEAD),
        ("PUT", "/bucket/key", "partNumber=1&uploadId=2", RequestKind.PUT),
        ("POST", "/bucket", "delete", RequestKind.POST),
        ("DELETE", "/bucket/key", "", RequestKind.DELETE),
        ("OPTIONS", "/bucket/key", "", None),
    ],
)
def test_a_request_is_of_the_kind_that_it_is_paid_as(
    method: str, path: str, query: str, kind: RequestKind | None
) -> None:
    assert kind_of(method, path, query) is kind


def test_requests_are_counted_on_their_way_and_taken_once() -> None:
    counted = Counted(lambda environ, start: [environ["PATH_INFO"].encode()])
    for method in ("PUT", "PUT", "GET"):
        environ = {"REQUEST_METHOD": method, "PATH_INFO": "/bucket/key"}
        assert list(counted(environ, lambda *_: None)) == [b"/bucket/key"]
    assert counted.take() == {"GET": 1, "PUT": 2}
    assert counted.take() == {}


def test_requests_are_counted_from_one_compaction_to_the_next() -> None:
    assert BATCHES == scenarios.DECADE + 1
    assert JSON.has_keys is False
