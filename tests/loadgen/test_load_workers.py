"""A master of Locust and its workers, in processes of their own: who keeps the ledger, and what becomes of the lost."""

from __future__ import annotations

import signal
from pathlib import Path

from lakestream_loadgen.ledger.reader import read_ledgers
from lakestream_localkinesis.testing import LocalKinesis

from .conftest import EVENT_ID, audit_stream, free_port, locust, master, rest, told, wait_for, worker
from .test_load_runs import rows


def test_a_worker_that_cannot_write_its_ledger_fails_the_run(kinesis: LocalKinesis, tmp_path: Path) -> None:
    port = str(free_port())
    folder = tmp_path / "ledger"
    folder.write_text("a file")
    with master(kinesis, port, "--run-time", "60s") as one, worker(kinesis, port, folder):
        output, _ = one.communicate(timeout=240)
    assert one.returncode == 2, output
    assert "the load cannot start" in output


def test_a_worker_that_is_lost_fails_the_run(kinesis: LocalKinesis, tmp_path: Path) -> None:
    port = str(free_port())
    with (
        master(kinesis, port, "--expect-workers", "2", "--users", "20", "-r", "20", patience=5) as one,
        worker(kinesis, port, tmp_path),
        worker(kinesis, port, tmp_path) as killed,
    ):
        wait_for(lambda: len(list(tmp_path.glob("*.ledger"))) == 2)
        wait_for(lambda: len(kinesis.records("orders")) > 1000)
        killed.kill()
        # The master has not missed it yet, and will while it waits for both: however slow the machine is.
        one.send_signal(signal.SIGTERM)
        output, _ = one.communicate(timeout=240)
    assert one.returncode == 1, output
    assert "is not heard of" in output
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict


def test_a_run_that_ends_since_its_last_worker_was_not_heard_of_fails(kinesis: LocalKinesis, tmp_path: Path) -> None:
    port = str(free_port())
    with master(kinesis, port, patience=5) as one, worker(kinesis, port, tmp_path) as slow:
        wait_for(lambda: kinesis.records("orders"))
        slow.send_signal(signal.SIGSTOP)
        output = told(one, "last worker went missing")
        slow.send_signal(signal.SIGCONT)
        output += rest(one)
    assert one.returncode == 1, output
    assert "no worker was heard of" in output


def test_a_worker_that_comes_late_writes_its_share_and_keeps_the_ledger_that_it_was_started_with(
    kinesis: LocalKinesis, tmp_path: Path
) -> None:
    """The run goes on without a change of users: whoever comes must be given some, and have what these need."""
    port, slow = str(free_port()), str(Path(__file__).with_name("slow_locustfile.py"))
    with (
        master(kinesis, port, "--users", "6", "-r", "6", "--events", "50") as leader,
        worker(kinesis, port, tmp_path / "first") as first,
    ):
        wait_for(lambda: written_by(kinesis))
        with worker(kinesis, port, tmp_path / "late", "-f", slow) as late:
            wait_for(lambda: len(written_by(kinesis)) == 2)
            leader.send_signal(signal.SIGTERM)
            output, _ = leader.communicate(timeout=240)
            assert leader.returncode == 0, output
            for one in (first, late):
                one.wait(timeout=240)
    assert all(list((tmp_path / name).glob("*.ledger")) for name in ("first", "late"))
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert verdict.acknowledged > 0
    assert read_ledgers(str(tmp_path)).open == ()


def test_a_run_is_over_in_time_also_while_its_users_are_started(kinesis: LocalKinesis, tmp_path: Path) -> None:
    port = str(free_port())
    arguments = ("--users", "1000", "-r", "1", "--run-time", "3s")
    with master(kinesis, port, *arguments) as one, worker(kinesis, port, tmp_path):
        output, _ = one.communicate(timeout=240)
    # On a busy machine it may be over before the worker has written.
    assert one.returncode == (0 if kinesis.records("orders") else 2), output


def test_a_second_sigterm_waits_for_what_the_first_waits_for(kinesis: LocalKinesis, tmp_path: Path) -> None:
    """As `timeout` sends two: the master ended, with the figures of before, while its workers still settled."""
    port = str(free_port())
    page = ("--master", "--autostart", "--web-port", str(free_port()), "--master-bind-port", port)
    with locust(kinesis, *page, "--users", "20", "-r", "20") as one, worker(kinesis, port, tmp_path):
        wait_for(lambda: kinesis.records("orders"))
        kinesis.faults.latency(5, "PutRecords")
        known = len(kinesis.records("orders"))
        wait_for(lambda: len(kinesis.records("orders")) > known)
        one.send_signal(signal.SIGTERM)
        output = told(one, "Got SIGTERM")
        one.send_signal(signal.SIGTERM)
        output += rest(one)
    assert one.returncode == 0, output
    verdict = audit_stream(kinesis, tmp_path)
    assert verdict.ok, verdict
    assert rows(output)["records acknowledged"] == verdict.acknowledged


def written_by(kinesis: LocalKinesis) -> set[bytes]:
    """The workers whose events are in the stream."""
    found = (EVENT_ID.search(record.data) for record in kinesis.records("orders"))
    return {one[1].split(b"-")[1] for one in found if one}


def test_a_master_that_waits_for_its_workers_can_be_ended(kinesis: LocalKinesis) -> None:
    with master(kinesis, str(free_port()), "--expect-workers", "2") as one:
        output = told(one, "Waiting for workers")
        one.send_signal(signal.SIGTERM)
        output += rest(one)
    assert one.returncode == 2, output
    assert "the load has not started" in output
