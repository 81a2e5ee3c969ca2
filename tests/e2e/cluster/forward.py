"""Ports of pods on the loopback interface.

Each connection has a tunnel of its own, by a WebSocket to the API server. All those of a `kubectl port-forward` share
one, and stop for ever when one of them is cut off in mid-transfer (kubernetes/kubectl#1620), as clients of S3 do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import aiohttp
from kubernetes.aio.client.rest import RESTClientObject

from lakestream_operator.adapters.credentials import credentials_of

logger = logging.getLogger(__name__)

_PROTOCOL = "v4.channel.k8s.io"
"""Frames begin with a byte for their channel. The first frame of each channel from the server repeats the port."""
_DATA, _ERROR = 0, 1
_CHUNK = 64 << 10


@contextmanager
def forwarded(namespace: str, selector: str, port: int) -> Iterator[int]:
    """The local port that leads to `port` of a running pod with these labels, while entered."""
    tunnels = _Tunnels(namespace, selector, port)
    thread = threading.Thread(target=tunnels.run, name=f"tunnels to {selector}", daemon=True)
    thread.start()
    try:
        yield tunnels.local_port()
    finally:
        tunnels.close()
        thread.join(timeout=10)


class _Tunnels:
    """A server on the loopback interface, in an event loop of its own."""

    def __init__(self, namespace: str, selector: str, port: int) -> None:
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._selector = selector
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening = threading.Event()
        self._local_port = 0
        self._closed = asyncio.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    def local_port(self) -> int:
        assert self._listening.wait(timeout=30), "the tunnels do not listen"
        return self._local_port

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._closed.set)

    async def _serve(self) -> None:
        async with credentials_of(os.environ) as credentials:
            connector = aiohttp.TCPConnector(ssl=RESTClientObject(credentials).ssl_context, limit=0)
            token = await credentials.get_api_key_with_prefix("BearerToken")
        headers = {"Authorization": token} if token else {}
        async with aiohttp.ClientSession(credentials.host, connector=connector, headers=headers) as session:

            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    await self._tunnel(session, reader, writer)
                except (OSError, aiohttp.ClientError) as error:
                    logger.info("a tunnel to %s ended: %s", self._selector, error)
                finally:
                    writer.close()

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            self._local_port = server.sockets[0].getsockname()[1]
            self._loop = asyncio.get_running_loop()
            self._listening.set()
            await self._closed.wait()
            server.close()

    async def _tunnel(
        self, session: aiohttp.ClientSession, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        path = f"{self._pods}/{await self._pod(session)}/portforward"
        async with session.ws_connect(
            path, params={"ports": self._port}, protocols=(_PROTOCOL,), max_msg_size=0
        ) as tunnel:
            upward = asyncio.create_task(self._upward(reader, tunnel))
            try:
                await self._downward(tunnel, writer)
            finally:
                upward.cancel()

    async def _pod(self, session: aiohttp.ClientSession) -> str:
        async with session.get(self._pods, params={"labelSelector": self._selector}, raise_for_status=True) as answer:
            for pod in (await answer.json())["items"]:
                if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running":
                    return str(pod["metadata"]["name"])
        raise ConnectionError(f"no pod {self._selector} runs")

    async def _upward(self, reader: asyncio.StreamReader, tunnel: aiohttp.ClientWebSocketResponse) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await tunnel.send_bytes(bytes([_DATA]) + data)
        await tunnel.close()

    async def _downward(self, tunnel: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
        begun = set()
        async for message in tunnel:
            channel, data = message.data[0], message.data[1:]
            if channel not in begun:
                begun.add(channel)
                data = data[2:]
            if channel == _ERROR and data:
                raise ConnectionError(data.decode(errors="replace"))
            if channel == _DATA and data:
                writer.write(data)
                await writer.drain()
