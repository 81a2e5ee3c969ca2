"""What the operator serves: its health and its metrics."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Handler = Callable[[web.Request], Awaitable[web.Response]]

Check = Callable[[], list[str]]
"""Says what is wrong, one sentence each; nothing when all is well."""


def serve_health(port: int, alive: Check, ready: Check) -> AbstractAsyncContextManager[int]:
    """Serve `/healthz` and `/readyz` while the context lasts; gives the port."""
    return _serve(port, {"/healthz": _checked(alive), "/readyz": _checked(ready)})


def serve_metrics(port: int, registry: CollectorRegistry) -> AbstractAsyncContextManager[int]:
    """Serve `/metrics` while the context lasts; gives the port."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return _serve(port, {"/metrics": metrics})


def _checked(check: Check) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        problems = check()
        return web.Response(text="\n".join(problems) or "ok", status=503 if problems else 200)

    return answer


@asynccontextmanager
async def _serve(port: int, handlers: dict[str, Handler]) -> AsyncIterator[int]:
    app = web.Application()
    for path, handler in handlers.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        listening = _listen(port)
        await web.SockSite(runner, listening).start()
        yield listening.getsockname()[1]
    finally:
        await runner.cleanup()


def _listen(port: int) -> socket.socket:
    """One socket for IPv4 and IPv6: two would have two ports where any free one is asked for."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
