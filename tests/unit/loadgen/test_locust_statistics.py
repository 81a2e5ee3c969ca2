"""What Locust's tables show. Run in a process of their own: Locust patches the one that imports it."""

from __future__ import annotations

import pytest

from .conftest import errors_of

PREAMBLE = """
from argparse import Namespace
from collections import Counter
from locust.env import Environment
from lakestream_loadgen.errors import OutcomeUnknownError
from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.statistics import LocustStatistics, RecordsSettled

def fresh():
    environment = Environment()
    settled = RecordsSettled(environment)
    statistics = LocustStatistics(environment, "orders", settled)
    stats = environment.stats
    return {**globals(), **locals()}
"""

CASES = {
    "records and calls have rows of their own, and the total counts records": """
        statistics.called(0.02, 1000, None)
        statistics.acknowledged(500, 125_000, Counter({0.0304: 300, 0.0309: 100, 0.15: 100}))
        calls = stats.get("orders: PutRecords", "kinesis")
        records = stats.get("orders: records acknowledged", "kinesis")
        assert (calls.num_requests, calls.total_content_length, calls.avg_response_time) == (1, 1000, 20)
        for row in (records, stats.total):
            assert row.num_requests == sum(row.num_reqs_per_sec.values()) == 500
            assert row.total_content_length == 125_000
            assert dict(row.response_times) == {30: 400, 150: 100}
            assert (row.min_response_time, row.max_response_time, row.median_response_time) == (30, 150, 30)
            assert row.avg_response_time == (400 * 30 + 100 * 150) / 500
    """,
    "bytes are counted in KiB and none is lost between batches": """
        for _ in range(100):
            statistics.acknowledged(1, 1000, Counter({0.0: 1}))
        row = stats.get("orders: KiB acknowledged", "kinesis")
        assert row.num_requests == 100_000 // 1024
        assert row.total_content_length == row.num_requests * 1024
        assert stats.total.num_requests == 100
    """,
    "throttled records are neither failures nor part of the total": """
        statistics.throttled(7)
        row = stats.get("orders: records throttled", "kinesis")
        assert (row.num_requests, row.num_failures) == (7, 0)
        assert stats.total.num_requests == 0
        assert settled.lost == 0
    """,
    "what is given up is a failure, with its reason": """
        statistics.given_up(3, Outcome.FAILED, "Throttled")
        statistics.given_up(2, Outcome.UNKNOWN, "ConnectionLost")
        for name, count in (("records failed", 3), ("records unknown", 2)):
            row = stats.get(f"orders: {name}", "kinesis")
            assert (row.num_requests, row.num_failures) == (count, count)
        assert (stats.total.num_requests, stats.total.num_failures) == (5, 5)
        reasons = {error.error: error.occurrences for error in stats.errors.values()}
        assert reasons == {"Throttled": 3, "ConnectionLost": 2}
        assert settled.lost == 5
    """,
    "what is lost stays so when the tables are emptied, and is forgotten in the next run": """
        statistics.given_up(3, Outcome.FAILED, "Throttled")
        environment.events.reset_stats.fire()
        stats.reset_all()
        assert settled.lost == 3
        environment.events.test_start.fire(environment=environment)
        assert settled.lost == 0
    """,
    "what workers lose is told to their master once": """
        master = Environment()
        all_settled = RecordsSettled(master)
        statistics.acknowledged(5, 1000, Counter({0.0: 5}))
        for records in (3, 0, 4):
            if records:
                statistics.given_up(records, Outcome.UNKNOWN, "ConnectionLost")
            report = {}
            environment.events.report_to_master.fire(client_id="worker", data=report)
            master.events.worker_report.fire(client_id="worker", data=report)
        master.events.worker_report.fire(client_id="a worker of another locustfile", data={})
        assert (all_settled.acknowledged, all_settled.lost) == (5, 7)
    """,
    "a call without an answer is a failed call, and no failed record": """
        statistics.called(0.1, 10, OutcomeUnknownError("ConnectionLost", "reset"))
        row = stats.get("orders: PutRecords", "kinesis")
        assert (row.num_requests, row.num_failures) == (1, 1)
        assert stats.total.num_failures == 0
        assert [error.error for error in stats.errors.values()] == ["ConnectionLost"]
    """,
    "a load whose users only raise is no success": """
        from locust import log
        from lakestream_loadgen.status import exit_status
        environment.create_local_runner()
        statistics.called(0.1, 10, OutcomeUnknownError("ConnectionLost", "reset"))
        assert exit_status(environment, settled, set()) == 0, "its records were written by the next call"
        assert exit_status(environment, settled, {"worker-1"}) == 1
        environment.runner.log_exception("local", "no such producer", "Traceback")
        assert exit_status(environment, settled, set()) == 1
        log.unhandled_greenlet_exception = True
        assert exit_status(environment, settled, set()) == 2
        log.unhandled_greenlet_exception = False
    """,
    "a load that begins by itself and writes nothing is no success": """
        from lakestream_loadgen.status import exit_status
        environment.create_local_runner()
        assert exit_status(environment, settled, set()) == 0, "nobody may have asked its page for a load"
        for begins in ({"headless": True, "autostart": False}, {"headless": False, "autostart": True}):
            environment.parsed_options = Namespace(**begins)
            assert exit_status(environment, settled, set()) == 2
            assert exit_status(environment, settled, {"worker-1"}) == 1, "who knows what was acknowledged to it"
        statistics.given_up(3, Outcome.FAILED, "ResourceNotFoundException")
        assert exit_status(environment, settled, set()) == 2
        statistics.acknowledged(1, 100, Counter({0.0: 1}))
        assert exit_status(environment, settled, set()) == 1
        settled.lost = 0
        assert exit_status(environment, settled, set()) == 0
    """,
    "rows can be sent to a master and added up there": """
        statistics.acknowledged(500, 125_000, Counter({0.03: 500}))
        sent = stats.serialize_stats()
        total = stats.total.get_stripped_report()
        from locust.stats import StatsEntry
        master = Environment().stats
        for report in [*sent, *sent]:
            entry = StatsEntry.unserialize(report, master)
            master.entries[(entry.name, entry.method)].extend(entry)
        assert master.get("orders: records acknowledged", "kinesis").num_requests == 1000
        assert StatsEntry.unserialize(total, master).num_requests == 500
    """,
}


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """What the cases that failed ended with."""
    return errors_of(PREAMBLE, CASES)


@pytest.mark.parametrize("case", CASES)
def test_locust_statistics(case: str, errors: dict[str, str]) -> None:
    assert case not in errors, errors[case]
