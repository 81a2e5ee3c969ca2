"""A local Kinesis, and Locust in processes of its own that write to it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from lakestream_loadgen.audit import AuditVerdict, audit
from lakestream_loadgen.audit.lake import QUARANTINE_SCHEMA
from lakestream_loadgen.ledger.reader import read_ledger
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

_PATIENCE = 200.0
"""Seconds, as a machine may stand still for a minute."""
_PATIENT = Path(__file__).with_name("patient_locustfile.py")
EVENT_ID = re.compile(rb'"event_id":"([^"]+)"')


@pytest.fixture
def kinesis() -> Iterator[LocalKinesis]:
    """A Kinesis with a stream ``orders`` of four shards, without limits on throughput."""
    with local_kinesis(limits=Limits.none(), seed=7) as server:
        server.create_stream("orders", shards=4)
        yield server


@contextmanager
def locust(
    kinesis: LocalKinesis, *arguments: str, program: str = "lakestream_loadgen", patience: float = _PATIENCE
) -> Iterator[subprocess.Popen[str]]:
    """``lakestream load`` in a process, as the image starts it; killed at the end if it still runs.

    ``patience``: seconds that workers which are not heard of are waited for at its end.
    """
    command = [sys.executable, "-m", program, "load", "-f", str(_PATIENT), *arguments]
    environment = {**os.environ, **kinesis.environment(), "LOAD_TEST_PATIENCE": str(patience)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run_load(kinesis: LocalKinesis, *arguments: str, program: str = "lakestream_loadgen") -> tuple[int, str]:
    """Run headless to the end; the exit status and the output."""
    with locust(kinesis, "--headless", *arguments, program=program) as process:
        output, _ = process.communicate(timeout=240)
        return process.returncode, output


def master(
    kinesis: LocalKinesis, port: str, *arguments: str, patience: float = _PATIENCE
) -> AbstractContextManager[subprocess.Popen[str]]:
    return locust(kinesis, "--master", "--headless", "--master-bind-port", port, *arguments, patience=patience)


def worker(
    kinesis: LocalKinesis, port: str, ledger: Path, *arguments: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    return locust(kinesis, "--worker", "--master-port", port, "--ledger", str(ledger), *arguments)


def wait_for(condition: Callable[[], object], seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def told(process: subprocess.Popen[str], text: str) -> str:
    """What it writes up to the line with a text. The others by `rest`: `communicate` skips what was read ahead."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"it ended without {text!r}: {''.join(lines)}")


def rest(process: subprocess.Popen[str]) -> str:
    """What it writes to its end."""
    assert process.stdout is not None
    output = process.stdout.read()
    process.wait(timeout=240)
    return output


def free_port() -> int:
    """Below those that the system picks: one of them might be somebody's connection before Locust listens on it."""
    for port in random.sample(range(10_000, 30_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def audit_stream(kinesis: LocalKinesis, ledger: Path, stream: str = "orders") -> AuditVerdict:
    """Hold the stream itself against the ledger, as a lake that lost and doubled nothing would look.

    So nothing that ledgers of killed workers do not account for is lost.
    """
    entries = read_ledger(str(ledger))
    ids, malformed = entries["event_id"].to_pylist(), entries["malformed"].to_pylist()
    bad = {event_id for event_id, is_bad in zip(ids, malformed, strict=True) if is_bad}
    rows, quarantine = [], []
    for record in kinesis.records(stream):
        place = {"shard_id": record.shard_id, "sequence_number": record.sequence_number, "sub_sequence": 0}
        found = EVENT_ID.search(record.data)
        assert found is not None
        if found[1].decode() in bad:
            fields = {"data": record.data, "partition_key": record.partition_key, "reason": "malformed"}
            quarantine.append({**fields, **place})
        else:
            rows.append({**orjson.loads(record.data), **{f"_{name}": value for name, value in place.items()}})
    return audit(entries, pa.Table.from_pylist(rows), pa.Table.from_pylist(quarantine, schema=QUARANTINE_SCHEMA))
