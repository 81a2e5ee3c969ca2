"""The shared producer against scripted answers. No network; the only waits are for greenlets."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import gevent
import pytest
from gevent.event import Event

from lakestream_loadgen.errors import LoadgenError, NotWrittenError, OutcomeUnknownError, PutRecordsError, RefusedError
from lakestream_loadgen.kinesis.batching import BatchLimits
from lakestream_loadgen.kinesis.producer import KinesisProducer, ProducerSettings
from lakestream_loadgen.kinesis.retry import RetryPolicy
from lakestream_loadgen.kinesis.wire import THROTTLED
from lakestream_loadgen.ledger.outcomes import Outcome, Settled
from lakestream_loadgen.records import Record

Reply = Callable[[Sequence[str]], list[str | None]]
"""Of the event ids in a call: an error code for each, None for written; or raises."""


def all_written(ids: Sequence[str]) -> list[str | None]:
    return [None] * len(ids)


def refuse(error: PutRecordsError) -> Reply:
    def reply(ids: Sequence[str]) -> list[str | None]:
        raise error

    return reply


def throttle(*numbers: int) -> Reply:
    return lambda ids: [THROTTLED if number in numbers else None for number in range(len(ids))]


class ScriptedKinesis:
    """Answers call by call from a script, then writes everything. The data of a record is its event id."""

    def __init__(self, *script: Reply) -> None:
        self.script = list(script)
        self.calls: list[list[str]] = []
        self.closed = False
        self._sequence = 100

    def put_records(self, body: bytes) -> bytes:
        request = json.loads(body)
        assert request["StreamName"] == "orders"
        ids = [base64.b64decode(entry["Data"]).decode() for entry in request["Records"]]
        self.calls.append(ids)
        gevent.sleep(0)
        reply = self.script.pop(0) if self.script else all_written
        results: list[dict[str, str]] = []
        for error in reply(ids):
            self._sequence += 1
            written = {"ShardId": "s0", "SequenceNumber": str(self._sequence)}
            results.append({"ErrorCode": error} if error else written)
        failed = sum("ErrorCode" in result for result in results)
        return json.dumps({"FailedRecordCount": failed, "Records": results}).encode()

    def close(self) -> None:
        self.closed = True


class RememberedLedger:
    """Keeps the order of things, and what became of each event."""

    def __init__(self, kinesis: ScriptedKinesis) -> None:
        self.sent_ids: list[str] = []
        self.outcomes: dict[str, tuple[Outcome, int]] = {}
        self._kinesis = kinesis

    def sent(self, records: Sequence[Record]) -> int:
        called = {event_id for call in self._kinesis.calls for event_id in call}
        assert not called & {record.event_id for record in records}, "sent before it was noted"
        self.sent_ids += [record.event_id for record in records]
        return len(self.sent_ids) - len(records)

    def settled(self, settled: Settled) -> None:
        for index, row in enumerate(settled.rows):
            event_id = self.sent_ids[row]
            assert event_id not in self.outcomes, "settled twice"
            self.outcomes[event_id] = (settled.outcome, settled.attempts[index])
            if settled.outcome is Outcome.ACKNOWLEDGED:
                assert settled.sequence_numbers[index] is not None


class Counts:
    """An observer that counts."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def called(self, seconds: float, request_bytes: int, error: PutRecordsError | None) -> None:
        self.seen["calls" if error is None else f"failed calls: {error.code}"] += 1

    def acknowledged(self, records: int, data_bytes: int, latencies: Counter[float]) -> None:
        assert latencies.total() == records
        self.seen["acknowledged"] += records
        self.seen["bytes"] += data_bytes

    def throttled(self, records: int) -> None:
        self.seen["throttled"] += records

    def given_up(self, records: int, outcome: Outcome, code: str) -> None:
        self.seen[f"{outcome.name}: {code}"] += records


class Setting:
    """A producer and all that it talks to."""

    def __init__(
        self, *script: Reply, attempts: int = 5, connections: int = 2, records: int = 500, linger: float = 0.0
    ) -> None:
        self.kinesis = ScriptedKinesis(*script)
        self.ledger = RememberedLedger(self.kinesis)
        self.counts = Counts()
        self.failures: list[str] = []
        self.producer = KinesisProducer(
            ProducerSettings("orders", connections, BatchLimits(linger, records), RetryPolicy(0.0, 0.0, attempts)),
            self.kinesis,
            ledger=self.ledger,
            observer=self.counts,
            random=Random(1),
            on_failure=self.failures.append,
        )

    def put(self, *records: Record) -> int:
        with gevent.Timeout(60):
            return self.producer.put(records)


def event(event_id: str, group: str | None = None, *, last: bool = False) -> Record:
    return Record(event_id, "key", event_id.encode(), False, group, last)


def test_a_user_is_told_how_many_of_its_records_were_written() -> None:
    setting = Setting()
    assert setting.put() == 0
    assert setting.put(event("a"), event("b")) == 2
    assert setting.kinesis.calls == [["a", "b"]]
    assert setting.ledger.outcomes == {"a": (Outcome.ACKNOWLEDGED, 1), "b": (Outcome.ACKNOWLEDGED, 1)}
    assert setting.counts.seen == {"calls": 1, "acknowledged": 2, "bytes": 2}


def test_thousands_of_users_share_calls() -> None:
    setting = Setting()
    users = [gevent.spawn(setting.put, event(f"e{number}")) for number in range(2000)]
    gevent.joinall(users, timeout=60, raise_error=True)
    assert sum(user.value for user in users) == 2000
    assert len(setting.kinesis.calls) < 20
    assert max(map(len, setting.kinesis.calls)) == 500


def test_just_the_throttled_records_are_sent_again() -> None:
    setting = Setting(throttle(0, 2), throttle(1))
    assert setting.put(event("a"), event("b"), event("c")) == 3
    assert setting.kinesis.calls == [["a", "b", "c"], ["a", "c"], ["c"]]
    assert setting.ledger.outcomes == dict.fromkeys("abc", (Outcome.ACKNOWLEDGED, 1))
    assert setting.counts.seen["throttled"] == 3


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(OutcomeUnknownError("ConnectionLost", ""), 2), (NotWrittenError("ConnectionFailed", ""), 1)],
)
def test_a_lost_call_is_sent_again_and_counted_if_it_may_have_been_written(
    error: PutRecordsError, attempts: int
) -> None:
    setting = Setting(refuse(error))
    assert setting.put(event("a")) == 1
    assert setting.ledger.sent_ids == ["a"]
    assert setting.ledger.outcomes == {"a": (Outcome.ACKNOWLEDGED, attempts)}
    assert setting.counts.seen[f"failed calls: {error.code}"] == 1


def test_the_log_tells_once_why_calls_fail(caplog: pytest.LogCaptureFixture) -> None:
    away = refuse(NotWrittenError("ConnectionFailed", "http://127.0.0.1:4567/: Connection refused"))
    lost = refuse(OutcomeUnknownError("ConnectionLost", "timed out"))
    assert Setting(away, away, lost, away).put(event("a")) == 1
    failed, interrupted = [record.getMessage() for record in caplog.records]
    assert "ConnectionFailed: http://127.0.0.1:4567/: Connection refused" in failed
    assert "ConnectionLost: timed out" in interrupted


def test_an_internal_failure_of_one_record_may_have_been_written() -> None:
    setting = Setting(lambda ids: [None, "InternalFailure"])
    assert setting.put(event("a"), event("b")) == 2
    assert setting.ledger.outcomes == {"a": (Outcome.ACKNOWLEDGED, 1), "b": (Outcome.ACKNOWLEDGED, 2)}
    assert setting.counts.seen["throttled"] == 0


def test_what_is_always_throttled_fails_and_what_may_be_written_is_unknown() -> None:
    unknown = refuse(OutcomeUnknownError("ConnectionLost", ""))
    setting = Setting(throttle(0), throttle(0), unknown, unknown, unknown, attempts=2)
    assert setting.put(event("a"), event("b")) == 1
    assert setting.put(event("c")) == 0
    assert setting.ledger.outcomes == {
        "a": (Outcome.FAILED, 0),
        "b": (Outcome.ACKNOWLEDGED, 1),
        "c": (Outcome.UNKNOWN, 2),
    }
    assert setting.counts.seen[f"FAILED: {THROTTLED}"] == 1
    assert setting.counts.seen["UNKNOWN: ConnectionLost"] == 1


def test_a_refused_call_is_not_repeated() -> None:
    setting = Setting(refuse(RefusedError("ResourceNotFoundException", "no stream orders")))
    assert setting.put(event("a")) == 0
    assert setting.kinesis.calls == [["a"]]
    assert setting.ledger.outcomes == {"a": (Outcome.FAILED, 0)}


def test_one_record_that_kinesis_never_takes_keeps_no_other_from_it() -> None:
    """It refuses the whole call, in which there are records of many users, and names the place of the record."""
    told = "1 validation error detected: Value '' at 'records.2.member.partitionKey' failed to satisfy constraint: …"
    setting = Setting(refuse(RefusedError("ValidationException", told)), throttle(1), connections=1)
    users = [gevent.spawn(setting.put, *records) for records in ([event("a"), event("bad"), event("c")], [event("d")])]
    assert [user.get(timeout=60) for user in users] == [2, 1]
    assert setting.kinesis.calls == [["a", "bad", "c", "d"], ["a", "c", "d"], ["c"]]
    assert setting.ledger.outcomes == {
        "bad": (Outcome.FAILED, 0),
        **dict.fromkeys("acd", (Outcome.ACKNOWLEDGED, 1)),
    }
    assert setting.counts.seen["FAILED: ValidationException"] == 1


def test_any_number_of_records_that_kinesis_never_takes_cost_the_others_no_attempt() -> None:
    """It names ten at most; of 20 and more calls, each without one more of them, the last was to be the 15th."""

    def refuse_the_first_bad(ids: Sequence[str]) -> list[str | None]:
        bad = [place for place, event_id in enumerate(ids, 1) if event_id.startswith("bad")]
        if bad:
            told = f"1 validation error detected: Value '' at 'records.{bad[0]}.member.partitionKey' failed to …"
            raise RefusedError("ValidationException", told)
        return all_written(ids)

    setting = Setting(*[refuse_the_first_bad] * 20, throttle(0), attempts=2, connections=1)
    records = [event(f"bad{number}") for number in range(20)]
    assert setting.put(event("a"), *records, event("b")) == 2
    assert setting.ledger.outcomes["a"] == setting.ledger.outcomes["b"] == (Outcome.ACKNOWLEDGED, 1)
    assert setting.counts.seen["FAILED: ValidationException"] == 20
    assert [len(call) for call in setting.kinesis.calls] == [*range(22, 1, -1), 1]


def test_a_key_or_an_id_that_is_no_text_is_told_to_whoever_hands_it_in_and_keeps_nothing_from_others() -> None:
    setting = Setting()
    for event_id, key in (("b", "\ud83d"), ("b", "a\udc00b"), ("a\udc00b", "key")):
        with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
            setting.put(event("a"), Record(event_id, key, b"b"))
    assert setting.producer.drain(0.0) == 0
    assert setting.kinesis.calls == setting.ledger.sent_ids == []


def test_a_delete_leaves_after_its_orders_updates_are_settled() -> None:
    setting = Setting(throttle(0), throttle(0))
    assert setting.put(event("update", "o1"), event("delete", "o1", last=True), event("other", "o2")) == 3
    assert setting.kinesis.calls == [["update", "other"], ["update"], ["update"], ["delete"]]


def test_more_than_fits_into_a_call_is_cut() -> None:
    setting = Setting(records=4)
    assert setting.put(*[event(f"e{number}") for number in range(10)]) == 10
    assert sorted(map(len, setting.kinesis.calls)) == [2, 4, 4]


def test_drain_waits_for_everything_under_way() -> None:
    hold = Event()

    def held(ids: Sequence[str]) -> list[str | None]:
        hold.wait()
        return all_written(ids)

    setting = Setting(held)
    user = gevent.spawn(setting.put, event("a"))
    drained = gevent.spawn(setting.producer.drain, 60.0)
    gevent.sleep(0)
    assert not drained.ready()
    hold.set()
    assert drained.get(timeout=60) == 0
    assert user.get(timeout=60) == 1


def test_a_drain_sends_what_waits_for_others() -> None:
    """With a long linger it waited for them as well, and gave up what nobody had sent."""
    setting = Setting(linger=3600.0)
    user = gevent.spawn(setting.put, event("update", "o1"), event("delete", "o1", last=True))
    while not setting.producer.backlog:
        gevent.sleep(0)
    assert setting.kinesis.calls == []
    assert setting.producer.drain(30.0) == 0
    assert setting.kinesis.calls == [["update"], ["delete"]]
    assert user.get(timeout=60) == 2


def test_what_a_drain_waits_for_in_vain_is_given_up_before_anybody_counts() -> None:
    """The exit status is taken right behind it, and a master's last figures: 40 s of silence were a success."""
    setting = Setting(lambda ids: Event().wait(), connections=1)  # type: ignore[arg-type, return-value]
    user = gevent.spawn(setting.put, event("a"))
    while not setting.kinesis.calls:
        gevent.sleep(0)
    assert setting.producer.drain(0.0) == 1
    assert setting.counts.seen["UNKNOWN: Stopped"] == 1
    assert setting.ledger.outcomes == {"a": (Outcome.UNKNOWN, 1)}
    assert user.get(timeout=60) == 0
    setting.producer.close()
    assert setting.producer.drain(60.0) == 0
    assert setting.counts.seen["UNKNOWN: Stopped"] == 1


def test_a_drain_ends_users_that_go_on_putting() -> None:
    """Of users of one's own, which take no tokens: there was always something under way, and it was given up."""
    setting = Setting()
    stopped: list[str] = []

    def click(name: str) -> None:
        number = 0
        try:
            while True:
                number += setting.put(event(f"{name}{number}"))
        except gevent.GreenletExit:
            # As Locust calls `on_stop`.
            stopped.append(name)
            setting.put(event(f"{name} stopped"))

    users = [gevent.spawn(click, name) for name in "abc"]
    while len(setting.kinesis.calls) < 10:
        gevent.sleep(0)
    assert setting.producer.drain(60.0) == 0
    gevent.joinall(users, timeout=60, raise_error=True)
    setting.producer.close()
    assert sorted(stopped) == ["a", "b", "c"]
    assert set(setting.counts.seen) == {"calls", "acknowledged", "bytes"}
    assert {outcome for outcome, _ in setting.ledger.outcomes.values()} == {Outcome.ACKNOWLEDGED}
    assert setting.ledger.outcomes.keys() == {event_id for call in setting.kinesis.calls for event_id in call}


def test_close_notes_what_is_under_way_as_unknown_and_lets_its_users_go() -> None:
    setting = Setting(lambda ids: Event().wait(), connections=1)  # type: ignore[arg-type, return-value]
    users = [gevent.spawn(setting.put, event("a", "o1"))]
    while not setting.kinesis.calls:
        gevent.sleep(0)
    users += [gevent.spawn(setting.put, event("b")), gevent.spawn(setting.put, event("c", "o1", last=True))]
    gevent.sleep(0)
    setting.producer.close()
    assert [user.get(timeout=60) for user in users] == [0, 0, 0]
    assert setting.ledger.outcomes == {"a": (Outcome.UNKNOWN, 1)}, "b and c were never sent"
    assert setting.counts.seen["FAILED: Stopped"] == 2
    assert setting.kinesis.closed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_without_its_ledger_a_producer_stops_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    setting = Setting()

    def full(records: Sequence[Record]) -> int:
        raise LoadgenError("no space left")

    setting.ledger.sent = full  # type: ignore[method-assign]
    with pytest.raises(LoadgenError, match="no space left"):
        setting.put(event("a"))
    with pytest.raises(LoadgenError, match="no space left"):
        setting.put(event("b"))
    assert setting.kinesis.calls == []
    assert setting.failures == ["the producer of orders is broken: no space left"]
    setting.producer.close()
    assert "no space left" in capsys.readouterr().err
