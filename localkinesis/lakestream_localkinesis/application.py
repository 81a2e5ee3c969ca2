"""Requests in, responses out: dispatch, errors, faults, and the pages beside the API. No sockets, no waiting."""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import uuid4

from lakestream_localkinesis.control import CONTROL_PATH, Control
from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.clock import Clock
from lakestream_localkinesis.core.subscription import Subscription
from lakestream_localkinesis.errors import (
    AccessDeniedException,
    ApiError,
    InternalFailure,
    UnknownOperationException,
)
from lakestream_localkinesis.eventstream import CONTENT_TYPE as EVENTS_TYPE
from lakestream_localkinesis.eventstream import EventStream
from lakestream_localkinesis.faults import FaultKind, FaultPlan
from lakestream_localkinesis.faulty import execute_with_faults
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.http import Request, Response
from lakestream_localkinesis.metrics import CONTENT_TYPE as METRICS_TYPE
from lakestream_localkinesis.metrics import render_metrics
from lakestream_localkinesis.operations import OPERATIONS
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.wire import WireFormat, decode_fields, encode_answer, encode_error

logger = logging.getLogger(__name__)

TARGET_PREFIX = "Kinesis_20131202."


class Application:
    """An account behind HTTP, as a function of requests and time."""

    def __init__(self, settings: AccountSettings, clock: Clock, control: Control | None = None) -> None:
        self.account = Account(settings)
        self.clock = clock
        self._control = control
        self._faults = control.faults if control else FaultPlan()

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        target = request.headers.get("x-amz-target")
        if target is not None or (request.method == "POST" and not request.path.startswith(CONTROL_PATH)):
            return self._call(target or "", request)
        now_ms = self.clock.now_ms()
        match request.method, request.path:
            case "GET", "/healthz":
                return Response(200, "text/plain", b"ok\n")
            case "GET", "/metrics":
                self.account.settle(now_ms)
                return Response(200, METRICS_TYPE, render_metrics(self.account).encode())
            case _, path if self._control and path.startswith(CONTROL_PATH):
                return self._control.handle(self.account, request)
            case _:
                return Response(404, "text/plain", b"not found\n")

    def settle(self) -> None:
        """Bring everything up to date with the clock."""
        self.account.settle(self.clock.now_ms())

    def _call(self, target: str, request: Request) -> Response:
        wire = WireFormat.of(request.headers.get("content-type", ""))
        now_ms = self.clock.now_ms()
        operation = target.removeprefix(TARGET_PREFIX)
        if self._faults.any() and self._faults.strikes(FaultKind.DROP_BEFORE, operation):
            return Response(500, wire.value, b"", drop=True)
        try:
            answer = self._execute(operation, target, wire, request.body, now_ms)
            if isinstance(answer, Subscription):
                return self._deliver(operation, Response(200, EVENTS_TYPE, b"", events=EventStream(answer, wire)))
            status, body = 200, encode_answer(wire, answer)
        except ApiError as error:
            status, body = error.status, encode_error(wire, error)
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
