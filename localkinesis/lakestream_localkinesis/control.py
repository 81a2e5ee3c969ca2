"""The control endpoint for tests: the clock, the faults, streams without rates, and all that is stored.

GET    /_testing/clock                       {"now_ms": …}
POST   /_testing/clock                       {"action": "advance" | "set" | "freeze" | "resume", "ms": …}
POST   /_testing/faults                      {"kind": …, and any other field of Fault}
DELETE /_testing/faults
POST   /_testing/streams                     {"name": …, "shards": …, "mode": …}
GET    /_testing/records/<stream>            {"records": [{…, "ShardId": …}, …]}
"""

from __future__ import annotations

from typing import Any

import orjson

from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.core.clock import DrivenClock
from lakestream_localkinesis.core.ondemand import INITIAL_SHARDS
from lakestream_localkinesis.core.stream import StreamMode
from lakestream_localkinesis.errors import ApiError, SettingsError
from lakestream_localkinesis.faults import Fault, FaultKind, FaultPlan
from lakestream_localkinesis.faulty import check_operations
from lakestream_localkinesis.fields import STREAM_NAME
from lakestream_localkinesis.http import Request, Response

CONTROL_PATH = "/_testing/"


class Control:
    """What only tests may do."""

    def __init__(self, clock: DrivenClock, faults: FaultPlan) -> None:
        self._clock = clock
        self.faults = faults

    def handle(self, account: Account, request: Request) -> Response:
        """Carry out a control request."""
        try:
            body = request.whole_body()
            fields = orjson.loads(body) if body else {}
            answer = self._route(account, request.method, request.path.removeprefix(CONTROL_PATH), fields)
        except (SettingsError, ApiError, ValueError, TypeError, KeyError) as error:
            return Response(400, "application/json", orjson.dumps({"error": f"{type(error).__name__}: {error}"}))
        return Response(200, "application/json", orjson.dumps(answer))

    def _route(self, account: Account, method: str, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        match method, path.split("/"):
            case "GET", ["clock"]:
                return {"now_ms": self._clock.now_ms()}
            case "POST", ["clock"]:
                self._drive(fields["action"], fields.get("ms", 0))
                return {"now_ms": self._clock.now_ms()}
            case "POST", ["faults"]:
                self.faults.add(_fault(fields))
                return {}
            case "DELETE", ["faults"]:
                self.faults.clear()
                return {}
            case "POST", ["streams"]:
                _create(account, fields, self._clock.now_ms())
                return {}
            case "GET", ["records", name]:
                return {"records": _stored(account, name, self._clock.now_ms())}
            case _:
                raise SettingsError(f"no control command {method} {path}")

    def _drive(self, action: str, milliseconds: int) -> None:
        if not _is_whole(milliseconds):
            raise SettingsError(f"ms: {milliseconds!r} is no whole number")
        match action:
            case "advance":
                self._clock.advance(milliseconds)
            case "set":
                self._clock.set(milliseconds)
            case "freeze":
                self._clock.freeze()
            case "resume":
                self._clock.resume()
            case _:
                raise SettingsError(f"action: {action!r} is none of advance, set, freeze, resume")


def _create(account: Account, fields: dict[str, Any], now_ms: int) -> None:
    mode = StreamMode(fields.get("mode", StreamMode.PROVISIONED))
    name, shards = fields["name"], INITIAL_SHARDS if mode is StreamMode.ON_DEMAND else fields["shards"]
    if not isinstance(name, str) or STREAM_NAME.violations(name):
        raise SettingsError(f"name: {name!r} is no name of a stream")
    if not _is_whole(shards) or shards < 1:
        raise SettingsError(f"shards: {shards!r} is no number of shards")
    account.create(name, mode, shards, {}, now_ms)


def _fault(fields: dict[str, Any]) -> Fault:
    operations = fields.pop("operations", [])
    if not isinstance(operations, list) or not all(isinstance(name, str) for name in operations):
        raise SettingsError(f"operations: {operations!r} is no list of names")
    fault = Fault(FaultKind(fields.pop("kind")), frozenset(operations), **fields)
    check_operations(fault)
    return fault


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _stored(account: Account, name: str, now_ms: int) -> list[dict[str, Any]]:
    stream = account.stream(name, now_ms)
    records = []
    for shard in stream.shards.values():
        shard.trim(stream.horizon_ms(now_ms))
        records += [{**orjson.loads(record), "ShardId": shard.id} for record in shard.records()]
    return records
