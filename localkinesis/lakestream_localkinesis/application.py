"""Requests in, responses out: dispatch, errors, faults, and the pages beside the API. No sockets, no waiting."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from lakestream_localkinesis.control import CONTROL_PATH, Control
from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.clock import Clock, DrivenClock, SystemClock
from lakestream_localkinesis.core.subscription import Subscription
from lakestream_localkinesis.errors import (
    AccessDeniedException,
    ApiError,
    InternalFailure,
    UnknownOperationException,
    UnwritableError,
)
from lakestream_localkinesis.eventstream import CONTENT_TYPE as EVENTS_TYPE
from lakestream_localkinesis.eventstream import EventStream
from lakestream_localkinesis.faults import FaultKind, FaultPlan
from lakestream_localkinesis.faulty import execute_with_faults
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.http import Request, Response
from lakestream_localkinesis.journal.journal import Journal
from lakestream_localkinesis.metrics import CONTENT_TYPE as METRICS_TYPE
from lakestream_localkinesis.metrics import render_metrics
from lakestream_localkinesis.operations import OPERATIONS
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.wire import WireFormat, decode_fields, encode_answer, encode_error

logger = logging.getLogger(__name__)

TARGET_PREFIX = "Kinesis_20131202."

_CHANGE_NO_STREAM = frozenset(
    {
        "DescribeAccountSettings",
        "DescribeLimits",
        "DescribeStream",
        "DescribeStreamConsumer",
        "DescribeStreamSummary",
        "GetRecords",
        "GetShardIterator",
        "ListShards",
        "ListStreamConsumers",
        "ListStreams",
        "ListTagsForResource",
        "ListTagsForStream",
        "PutRecord",
        "PutRecords",
        "SubscribeToShard",
    }
)
"""Operations that change nothing of a stream but its records."""


class Application:
    """An account behind HTTP, as a function of requests and time."""

    def __init__(
        self, account: Account, clock: Clock, control: Control | None = None, journal: Journal | None = None
    ) -> None:
        """`journal`: where the account is kept; without one it is gone with the process."""
        self.account = account
        self.clock = clock
        self._control = control
        self._journal = journal
        self._faults = control.faults if control else FaultPlan()

    @classmethod
    def open(cls, settings: AccountSettings, data: Path | None = None, faults: FaultPlan | None = None) -> Application:
        """An account with the machine's time, in a folder or in memory; with faults, tests drive both.

        Raises:
            StartupError: the folder cannot be used.
        """
        journal = Journal(data, settings, SystemClock().now_ms()) if data else None
        account = journal.account if journal else Account(settings)
        machine = SystemClock(journal.last_ms if journal else 0)
        if machine.ahead_ms:
            logger.warning(
                "this machine's clock is %.0f s behind the last time written to %s: the server's goes on from there",
                machine.ahead_ms / 1000,
                data,
            )
        if faults is None:
            return cls(account, machine, journal=journal)
        clock = DrivenClock(machine)
        return cls(account, clock, Control(clock, faults), journal)

    def close(self) -> None:
        """Let the folder go."""
        if self._journal:
            self._journal.close()

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        if request.method == "HEAD":
            return replace(self.handle(replace(request, method="GET")), to_head=True)
        target = request.headers.get("x-amz-target")
        if target is not None or (request.method == "POST" and not request.path.startswith(CONTROL_PATH)):
            return self._call(target or "", request)
        match request.method, request.path:
            case "GET", "/healthz":
                return Response(200, "text/plain", b"ok\n")
            case "GET", "/metrics":
                self.settle()
                return Response(200, METRICS_TYPE, render_metrics(self.account).encode())
            case _, path if self._control and path.startswith(CONTROL_PATH):
                return self._controlled(self._control, request)
            case _:
                return Response(404, "text/plain", b"not found\n")

    def settle(self, *, changed: bool = False) -> None:
        """Bring everything up to date with the clock; `changed`: streams were altered beside the API."""
        now_ms = self.clock.now_ms()
        self.account.settle(now_ms)
        if self._journal:
            # It says itself that it cannot write, and tries again. A full disk may need room to be made first.
            with suppress(UnwritableError):
                self._journal.prune(now_ms)
            with suppress(UnwritableError):
                self._journal.keep(now_ms, changed=changed)

    def push(self, events: EventStream, now_ms: int) -> bytes:
        """What a subscription sends now: nothing that a restart could take back."""
        if self._journal:
            try:
                self._journal.retry()
            except UnwritableError:
                return b""
        return events.poll(now_ms)

    def _call(self, target: str, request: Request) -> Response:
        wire = WireFormat.of(request.headers.get("content-type", ""))
        now_ms = self.clock.now_ms()
        operation = target.removeprefix(TARGET_PREFIX)
        if self._faults.any() and self._faults.strikes(FaultKind.DROP_BEFORE, operation):
            return Response(500, wire.value, b"", drop=True)
        try:
            answer = self._perform(operation, target, wire, request.whole_body(), now_ms)
            if isinstance(answer, Subscription):
                return self._deliver(operation, Response(200, EVENTS_TYPE, b"", events=EventStream(answer, wire)))
            status, body = 200, encode_answer(wire, answer)
        except ApiError as error:
            status, body = error.status, encode_error(wire, error)
        except UnwritableError as error:
            status, body = 500, encode_error(wire, InternalFailure(f"The server cannot keep its data: {error}"))
        except Exception:
            logger.exception("%s failed", operation)
            status, body = 500, encode_error(wire, InternalFailure("The server failed; its log says why."))
        return self._deliver(operation, Response(status, wire.value, body))

    def _deliver(self, operation: str, response: Response) -> Response:
        response = replace(response, headers={"x-amzn-RequestId": str(uuid4())})
        if not self._faults.any():
            return response
        latency = self._faults.strikes(FaultKind.LATENCY, operation)
        drop = self._faults.strikes(FaultKind.DROP, operation)
        return replace(response, delay_ms=latency.latency_ms if latency else 0, drop=drop is not None)

    def _perform(self, operation: str, target: str, wire: WireFormat, body: bytes, now_ms: int) -> Answer:
        """Execute an operation, and write down what it did before anybody is told."""
        if self._journal is None:
            return self._execute(operation, target, wire, body, now_ms)
        # Until what was done is written down, nothing is done and nothing is read.
        self._journal.retry()
        try:
            return self._execute(operation, target, wire, body, now_ms)
        finally:
            # Also an operation that is refused has brought its stream up to date.
            self._journal.keep(now_ms, changed=operation not in _CHANGE_NO_STREAM)

    def _controlled(self, control: Control, request: Request) -> Response:
        response = control.handle(self.account, request)
        if self._journal:
            try:
                self._journal.keep(self.clock.now_ms(), changed=True)
            except UnwritableError as error:
                return Response(500, "text/plain", f"{error}\n".encode())
        return response

    def _execute(self, operation: str, target: str, wire: WireFormat, body: bytes, now_ms: int) -> Answer:
        if not target:
            raise AccessDeniedException("Unable to determine service/operation name to be authorized", status=403)
        execute = OPERATIONS.get(operation) if target.startswith(TARGET_PREFIX) else None
        if execute is None:
            raise UnknownOperationException(f"This server has no operation {target}.")
        fields = Fields(decode_fields(wire, body))
        self.account.admit(operation, now_ms)
        if self._faults.any():
            return execute_with_faults(self._faults, operation, self.account, fields, now_ms)
        return execute(self.account, fields, now_ms)
