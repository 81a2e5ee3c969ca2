"""What a person sees in Locust's tables.

Rows, all of type ``kinesis`` and led by the stream's name:

    PutRecords             calls; fails: calls without an answer per record; size: request body
    records acknowledged   records; time: from hand-in to acknowledgement; size: data bytes of a record
    KiB acknowledged       KiB of data; its rate is KiB/s
    records throttled      refusals for a shard's throughput, each tried again: a record may count several times
    records failed         given up and certainly not written; all of them fails
    records unknown        given up but perhaps written; all of them fails

"Aggregated", and with it the charts and the rate in the page's head, counts records by their final outcome
and nothing else: the sum of calls and records would mean nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from locust.env import Environment
from locust.stats import RequestStats, StatsEntry, StatsError, bucket_response_time

from lakestream_loadgen.errors import PutRecordsError
from lakestream_loadgen.ledger.outcomes import Outcome

METHOD = "kinesis"
ACKNOWLEDGED = "records acknowledged"
THROTTLED = "records throttled"
FAILED = "records failed"
UNKNOWN = "records unknown"
_SETTLED = "lakestream_records_settled"
_GIVEN_UP = {Outcome.FAILED: FAILED, Outcome.UNKNOWN: UNKNOWN}


class RecordsSettled:
    """How many records of a run its users were told that they are written, and how many that they are not, or perhaps
    not; a master's workers included. Apart from the tables, which a person, or ``--reset-stats``, empties."""

    def __init__(self, environment: Environment) -> None:
        self.acknowledged = self.lost = 0
        self._told = (0, 0)
        events = environment.events
        events.test_start.add_listener(self._start)
        events.report_to_master.add_listener(self._tell)
        events.worker_report.add_listener(self._hear)

    def _start(self, **_: Any) -> None:
        self.acknowledged = self.lost = 0
        self._told = (0, 0)

    def _tell(self, data: dict[str, Any], **_: Any) -> None:
        acknowledged, lost = self._told
        data[_SETTLED] = (self.acknowledged - acknowledged, self.lost - lost)
        self._told = (self.acknowledged, self.lost)

    def _hear(self, data: dict[str, Any], **_: Any) -> None:
        acknowledged, lost = data.get(_SETTLED, (0, 0))
        self.acknowledged += acknowledged
        self.lost += lost


class LocustStatistics:
    """Reports a producer's doings of one stream to a Locust environment."""

    def __init__(self, environment: Environment, stream: str, settled: RecordsSettled) -> None:
        self._environment = environment
        self._stream = stream
        self._settled = settled
        self._partial_kib = 0

    def called(self, seconds: float, request_bytes: int, error: PutRecordsError | None) -> None:
        entry = self._entry("PutRecords")
        _log(entry, {int(seconds * 1000): 1}, request_bytes)
        if error is not None:
            self._log_errors(entry, 1, error.code)

    def acknowledged(self, records: int, data_bytes: int, latencies: Counter[float]) -> None:
        self._settled.acknowledged += records
        milliseconds: dict[int, int] = {}
        for seconds, count in latencies.items():
            rounded = int(seconds * 1000)
            milliseconds[rounded] = milliseconds.get(rounded, 0) + count
        for row in (self._entry(ACKNOWLEDGED), self._stats.total):
            _log(row, milliseconds, data_bytes)
        kib, self._partial_kib = divmod(self._partial_kib + data_bytes, 1024)
        if kib:
            _log(self._entry("KiB acknowledged"), {0: kib}, kib * 1024)

    def throttled(self, records: int) -> None:
        _log(self._entry(THROTTLED), {0: records}, 0)

    def given_up(self, records: int, outcome: Outcome, code: str) -> None:
        self._settled.lost += records
        entry = self._entry(_GIVEN_UP[outcome])
        for row in (entry, self._stats.total):
            _log(row, {0: records}, 0)
        self._log_errors(entry, records, code)
        _log_failures(self._stats.total, records)

    @property
    def _stats(self) -> RequestStats:
        # Looked up each time: Locust replaces the total when statistics are cleared.
        return self._environment.stats

    def _entry(self, name: str) -> StatsEntry:
        return self._stats.get(f"{self._stream}: {name}", METHOD)

    def _log_errors(self, entry: StatsEntry, count: int, code: str) -> None:
        _log_failures(entry, count)
        errors = self._stats.errors
        key = StatsError.create_key(METHOD, entry.name, code)
        if key not in errors:
            errors[key] = StatsError(METHOD, entry.name, code)
        errors[key].occurred()
        errors[key].occurrences += count - 1


def _log(entry: StatsEntry, latencies: Mapping[int, int], content_bytes: int) -> None:
    """Log many requests at once: ``latencies`` is milliseconds → requests, ``content_bytes`` their sum.

    Locust's own call takes one request at a time (some 3 µs: a fifth of the budget of a record). The first
    of each latency goes through it, which also keeps Locust's caches; the rest is added as it adds one.
    """
    now = int(time.time())
    for milliseconds, count in latencies.items():
        entry.log(milliseconds, content_bytes)
        content_bytes = 0
        more = count - 1
        entry.num_requests += more
        entry.num_reqs_per_sec[now] += more
        entry.total_response_time += milliseconds * more
        entry.response_times[bucket_response_time(milliseconds)] += more


def _log_failures(entry: StatsEntry, count: int) -> None:
    entry.num_failures += count
    entry.num_fail_per_sec[int(time.time())] += count
