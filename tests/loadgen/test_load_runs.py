"""Locust as a person starts it, on a local Kinesis, with what goes wrong in practice."""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.ledger.reader import read_ledger, read_ledgers
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

from .conftest import audit_stream, free_port, locust, run_load, wait_for

MIX = ("--malformed", "0.02", "--late", "0.05", "--max-lateness", "1")


def rows(output: str) -> Counter[str]:
    """Requests per row of the final table."""
    final = output[output.rindex("Shutting down") :]
    found = re.findall(r"^kinesis +orders: (.+?) +(\d+) +\d+\(", final, re.MULTILINE)
    return Counter({name: int(count) for name, count in found})


def test_workers_share_the_load_and_write_what_their_ledgers_say(kinesis: LocalKinesis, tmp_path: Path) -> None:
    port = str(free_port())
    status, output = run_load(
        kinesis,
        *("--processes", "2", "--users", "200", "-r", "200", "--events", "1000", "--run-time", "3s"),
        *MIX,
        *("--ledger", str(tmp_path), "--master-bind-port", port, "--master-port", port),
    )
    assert status == 0, output
    assert len(list(tmp_path.glob("*.ledger"))) == 2
    assert read_ledgers(str(tmp_path)).open == ()
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert verdict.unknown == verdict.failed == verdict.producer_duplicates == 0
    assert verdict.quarantined > 0
    assert rows(output)["records acknowledged"] == verdict.acknowledged == len(kinesis.records("orders"))
    # On a busy machine the load starts and ends late, and falls short of its rate; it is never twice of it.
    assert 0 < verdict.acknowledged < 6_000


def test_ctrl_c_ends_a_load_in_order_whoever_has_the_cpu(kinesis: LocalKinesis, tmp_path: Path) -> None:
    """At high rates that is a sender, mostly: without it, what it had under way would have had no outcome."""
    status, output = run_load(
        kinesis,
        *("-f", str(Path(__file__).with_name("interrupted_locustfile.py"))),
        *("--users", "4", "--events", "200", "--run-time", "60s", "--ledger", str(tmp_path)),
    )
    assert status == 0, output
    assert "Traceback" not in output
    outcomes = Counter(read_ledger(str(tmp_path))["outcome"].to_pylist())
    assert outcomes == {Outcome.ACKNOWLEDGED: len(kinesis.records("orders"))}


def test_a_load_that_cannot_write_its_ledger_says_only_that(kinesis: LocalKinesis, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    status, output = run_load(kinesis, "--users", "2", "--run-time", "2s", "--ledger", str(tmp_path / "file"))
    assert status == 2, output
    assert f"--ledger {tmp_path / 'file'} cannot be written to: File exists" in output
    assert "Traceback" not in output, output
    assert kinesis.records("orders") == []


def test_lost_connections_failures_and_throttles_lose_nothing(kinesis: LocalKinesis, tmp_path: Path) -> None:
    # On a busy machine there are few calls: some of each kind are certain.
    kinesis.faults.drop("PutRecords", times=3)
    kinesis.faults.throttle("PutRecords", times=3)
    kinesis.faults.drop("PutRecords", probability=0.1)
    kinesis.faults.drop_before("PutRecords", probability=0.05)
    kinesis.faults.internal_failure("PutRecords", probability=0.05)
    kinesis.faults.throttle("PutRecords", probability=0.02)
    with locust(
        kinesis, *("--headless", "--users", "200", "-r", "200", "--events", "1000"), *MIX, "--ledger", str(tmp_path)
    ) as process:
        wait_for(lambda: len(kinesis.records("orders")) > 2500)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=240)
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert verdict.producer_duplicates > 0, "no call was lost after it took effect: nothing was tested"
    assert rows(output)["records throttled"] > 0
    assert "ConnectionLost" in output
    assert process.returncode == 0, output
    last: dict[str, str] = {}
    events = [orjson.loads(record.data) for record in kinesis.records("orders") if is_good(record.data)]
    for event in events:
        revives = last.get(event["order_id"]) == "d" and event["op"] != "d"
        assert not revives, "a late or repeated event behind its order's delete"
        last[event["order_id"]] = event["op"]
    assert "d" in last.values()


def is_good(data: bytes) -> bool:
    try:
        return isinstance(orjson.loads(data)["version"], int)
    except orjson.JSONDecodeError:
        return False


def refused(kinesis: LocalKinesis) -> float:
    """Records that were throttled, as the server has counted them."""
    found = re.findall(
        r"^kinesis_write_throttles_total\{.*\} (\S+)$", page(f"{kinesis.endpoint}/metrics"), re.MULTILINE
    )
    return sum(map(float, found))


def test_a_full_shard_shows_as_throttled_and_the_rest_flows(tmp_path: Path) -> None:
    # A full call brings the busiest shard more than it takes in a second: some such call comes on any machine.
    with local_kinesis(limits=Limits(write_records=200)) as kinesis:
        kinesis.create_stream("orders", shards=4)
        with locust(
            kinesis,
            *("--headless", "--users", "200", "-r", "200", "--events", "1000", "--ledger", str(tmp_path)),
            *("--zipf", "1.5", "--customers", "1000"),
        ) as process:
            wait_for(lambda: refused(kinesis) and len({one.shard_id for one in kinesis.records("orders")}) == 4)
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=240)
        verdict = audit_stream(kinesis, tmp_path)
        assert verdict.ok, verdict
        assert rows(output)["records throttled"] > 0
        per_shard = Counter(record.shard_id for record in kinesis.records("orders"))
        assert len(per_shard) == 4
        assert verdict.acknowledged == sum(per_shard.values())


def test_a_killed_worker_leaves_a_ledger_that_accounts_for_all_it_sent(kinesis: LocalKinesis, tmp_path: Path) -> None:
    kinesis.faults.latency(0.2, "PutRecords")
    with locust(
        kinesis,
        *("--headless", "--users", "200", "-r", "200", "--events", "2000", "--ledger", str(tmp_path)),
    ) as process:
        wait_for(lambda: len(kinesis.records("orders")) > 1000)
        # Between two answers there may be nothing under way; what is written from now on is never answered.
        kinesis.faults.clear()
        kinesis.faults.latency(3600, "PutRecords")
        known = len(kinesis.records("orders"))
        wait_for(lambda: len(kinesis.records("orders")) > known)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    # The server still takes what the socket holds.
    wait_for(lambda: audit_stream(kinesis, tmp_path).unknown_arrived > 0)
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert verdict.unknown > 0
    assert len(read_ledgers(str(tmp_path)).open) == 1


def test_sigterm_drains_first(kinesis: LocalKinesis, tmp_path: Path) -> None:
    kinesis.faults.latency(0.3, "PutRecords")
    with locust(
        kinesis, *("--headless", "--users", "300", "-r", "300", "--events", "2000", "--ledger", str(tmp_path))
    ) as process:
        wait_for(lambda: len(kinesis.records("orders")) > 1000)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert verdict.unknown == 0
    assert read_ledgers(str(tmp_path)).open == ()
    assert rows(output)["records acknowledged"] == verdict.acknowledged


def test_sigterm_ends_users_of_ones_own_before_it_drains(kinesis: LocalKinesis, tmp_path: Path) -> None:
    kinesis.faults.latency(0.1, "PutRecords")
    with locust(
        kinesis,
        *("-f", str(Path(__file__).with_name("clicking_locustfile.py"))),
        *("--headless", "--users", "20", "-r", "20", "--ledger", str(tmp_path)),
    ) as process:
        wait_for(lambda: len(kinesis.records("orders")) > 500)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert "records failed" not in output
    outcomes = Counter(read_ledger(str(tmp_path))["outcome"].to_pylist())
    assert outcomes == {Outcome.ACKNOWLEDGED: len(kinesis.records("orders"))}
    assert rows(output)["records acknowledged"] == outcomes.total()


def test_the_run_time_of_users_of_ones_own_begins_when_they_do(kinesis: LocalKinesis) -> None:
    """It was counted from the start of the process: Locust's timer does so, which knows no later time yet."""
    _, output = run_load(kinesis, "-f", str(Path(__file__).with_name("late_locustfile.py")), "--run-time", "4s")
    began, ended = (
        datetime.fromisoformat(time)
        for time in re.findall(r"^\[(.+?)\] .*(?:Run time limit set|run-time limit reached)", output, re.MULTILINE)
    )
    assert ended - began > timedelta(seconds=2), output


def test_a_stream_that_does_not_exist_is_said_and_fails(kinesis: LocalKinesis, tmp_path: Path) -> None:
    status, output = run_load(
        kinesis, *("--stream", "none", "--users", "5", "-r", "5", "--run-time", "2s", "--ledger", str(tmp_path))
    )
    assert status == 2, output
    assert "ResourceNotFoundException" in output
    assert "none: records failed" in output
    assert "the load has written nothing: " in output


def test_help_has_our_options_beside_those_of_locust(kinesis: LocalKinesis) -> None:
    status, printed = run_load(kinesis, "--help", program="lakestream.main")
    assert status == 0
    assert "--zipf" in printed
    assert "--spawn-rate" in printed


def test_wrong_settings_end_at_once_with_their_name(kinesis: LocalKinesis) -> None:
    status, output = run_load(kinesis, "--malformed", "1.5")
    assert status == 2
    assert "malformed: 1.5 is not a share" in output


def test_the_web_page_starts_stops_and_starts_again(kinesis: LocalKinesis, tmp_path: Path) -> None:
    port = free_port()
    with locust(kinesis, "--web-port", str(port), "--ledger", str(tmp_path)) as process:
        base = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(base))
        assert "shape-period" in page(base) or "shape_period" in page(base), "the form lacks our options"
        for wrong in ({"events": "much"}, {"malformed": "1.5"}, {"events": "inf"}):
            refused = answer(f"{base}/swarm", user_count="50", spawn_rate="50", **wrong)
            assert not refused["success"]
            assert refused["message"].startswith(next(iter(wrong)))
        for events in ("500", "1000"):
            post(f"{base}/swarm", user_count="50", spawn_rate="50", events=events)
            before = len(kinesis.records("orders"))
            wait_for(lambda: len(kinesis.records("orders")) > before + 1000)  # noqa: B023
            names = {row["name"] for row in json.loads(page(f"{base}/stats/requests"))["stats"]}
            assert {"orders: PutRecords", "orders: records acknowledged", "orders: KiB acknowledged"} <= names
            post(f"{base}/stop")
            wait_for(lambda: json.loads(page(f"{base}/stats/requests"))["state"] == "stopped")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert len(list(tmp_path.glob("*.ledger"))) == 2
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert verdict.unknown == 0


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())


def answer(url: str, **form: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, urlencode(form).encode(), timeout=60) as response:
        answered: dict[str, Any] = json.loads(response.read())
        return answered


def post(url: str, **form: str) -> None:
    assert answer(url, **form)["success"]


def answers(url: str) -> bool:
    try:
        return bool(page(url))
    except OSError:
        return False
