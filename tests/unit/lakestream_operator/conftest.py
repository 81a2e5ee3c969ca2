"""A small API server over HTTP, a clock that is moved by hand, and an event loop that does not wait."""

import asyncio
import json
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.clock import ServerClock


@dataclass
class HandClock:
    """A clock."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class ApiServer:
    """Answers as it was told: by method and path a row of (status, body); the last one for ever."""

    answers: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)

    def on(self, method: str, path: str, *answers: tuple[int, Any]) -> None:
        self.answers[method, path] = list(answers)

    def sent(self, method: str) -> list[Any]:
        """Bodies of the requests of a method."""
        return [body for what, _, _, body in self.requests if what == method]

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if text else None
        self.requests.append((request.method, request.path, dict(request.query), body))
        row = self.answers.get((request.method, request.path), [(404, {"kind": "Status", "message": "not found"})])
        status, answer = row.pop(0) if len(row) > 1 else row[0]
        return web.json_response(answer, status=status, headers=self.headers)

    @asynccontextmanager
    async def client(self, clock: ServerClock | None = None) -> AsyncIterator[KubeClient]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        async with (
            TestServer(app) as server,
            KubeClient(Credentials(str(server.make_url("")).rstrip("/")), clock) as client,
        ):
            yield client


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def api() -> ApiServer:
    return ApiServer()


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine, for a minute at most."""
    return lambda coroutine: asyncio.run(asyncio.wait_for(coroutine, 60))


class UnhurriedLoop(asyncio.SelectorEventLoop):
    """Whoever waits for a time has it come once nothing else is left to do. For coroutines without sockets."""

    def __init__(self) -> None:
        self.passed = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.passed


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: UnhurriedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for ever"
        self._loop.passed += timeout
        return super().select(0)


@pytest.fixture
def play() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine without waiting, for ten minutes of its time at most."""

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=UnhurriedLoop) as runner:
            return runner.run(asyncio.wait_for(coroutine, 600))

    return run
