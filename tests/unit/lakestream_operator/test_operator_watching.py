"""kopf's watches, and the watchdog that looks after them, on an API server whose connections are cut, that forgets old
versions, hangs, refuses, and is started anew."""

import asyncio
import gc
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from lakestream_api import LakeStreamStatus
from lakestream_api.names import MANAGED_BY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator import handlers, logs, main, watchdog
from lakestream_operator.adapters.cache import WATCHED, Cache
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.errors import StoreWentBackError
from lakestream_operator.metrics import Metrics
from lakestream_operator.model import Kind, Reference
from lakestream_operator.observer import FINALIZER
from lakestream_operator.reconciler import Reconciler
from lakestream_operator.settings import Settings
from lakestream_operator.testing import lakestream
from lakestream_operator.testing.cluster import JOB
from lakestream_operator.watchdog import Watchdog

pytestmark = pytest.mark.waits

LABELS = {STREAM_LABEL: "orders", WRITER_LABEL: "json", "app.kubernetes.io/managed-by": MANAGED_BY}
POD = Reference(Kind.Pod, "lake", "orders-json-driver")
MAP = Reference(Kind.ConfigMap, "lake", "orders-json-progress")
DEEP = "deep"
STREAM = Reference(Kind.LakeStream, "lake", "orders")


@dataclass
class ApiServer:
    """Lists and watches, as the real one does; versions count all changes."""

    objects: dict[Reference, dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, str, Reference, dict[str, Any]]] = field(default_factory=list)
    version: int = 1
    forgotten: int = 0
    """Up to which version it knows no changes any more."""
    token: str = "first"
    refusal: int = 0
    """Status of the answer to each request for objects, if any."""
    hangs: bool = False
    """Whether it accepts watches and says nothing."""
    broken: bool = False
    """Whether watches say that the server cannot go on."""
    depth: int = 0
    """Of what stands as DEEP in an object."""
    missing: set[Kind] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    """Namespaces in which one may do nothing."""
    watches: set[asyncio.WriteTransport] = field(default_factory=set)
    selectors: set[tuple[Kind, str]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _runner: web.AppRunner | None = None

    # What happens to it.

    def put(self, reference: Reference, **parts: Any) -> None:
        """Make or change an object, as by these parts of it."""
        event = "MODIFIED" if reference in self.objects else "ADDED"
        found = {**(self.objects.get(reference) or self._new(reference)), **parts}
        self.objects[reference] = {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.version + 1)}}
        self._tell(event, reference, self.objects[reference])

    def remove(self, reference: Reference) -> None:
        """Delete an object, if it is there."""
        if reference in self.objects:
            found = self.objects.pop(reference)
            last = {**found["metadata"], "resourceVersion": str(self.version + 1)}
            self._tell("DELETED", reference, {**found, "metadata": last})

    def cut(self) -> None:
        """Break off all watches."""
        for one in self.watches:
            one.abort()
        self.watches.clear()

    def forget(self) -> None:
        """Know nothing of the changes until now."""
        self.forgotten = self.version

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        assert self._runner is not None
        self.cut()
        self.changed.set()
        await self._runner.cleanup()

    def versions(self) -> dict[Reference, int]:
        return {one: int(found["metadata"]["resourceVersion"]) for one, found in self.objects.items()}

    def _new(self, reference: Reference) -> dict[str, Any]:
        made = lakestream(reference.name) if reference.kind is Kind.LakeStream else {"metadata": {"labels": LABELS}}
        made |= {"apiVersion": reference.kind.api_version, "kind": reference.kind.name}
        made["metadata"] |= {
            "name": reference.name,
            "namespace": reference.namespace,
            "uid": f"uid {self.version}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        return made

    def _tell(self, event: str, reference: Reference, manifest: dict[str, Any]) -> None:
        self.version += 1
        self.history.append((self.version, event, reference, manifest))
        self.changed.set()
        self.changed = asyncio.Event()

    # What it says.

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"kind": "Status", "message": "who are you?"}, status=401)
        kinds = {f"{kind.value.prefix}/{kind.value.plural}": kind for kind in WATCHED if kind not in self.missing}
        path, namespace = request.path, ""
        if "/namespaces/" in path:
            prefix, namespace, plural = re.fullmatch(r"(.*)/namespaces/(.*)/(.*)", path).groups()  # type: ignore[union-attr]
            path = f"{prefix}/{plural}"
        kind = kinds.get(path)
        if kind is None:
            return self._discovery(request.path, list(kinds.values()))
        if self.refusal or namespace in self.forbidden:
            return web.json_response({"kind": "Status", "message": "no"}, status=self.refusal or 403)
        self.selectors.add((kind, request.query.get("labelSelector", "")))
        if request.query.get("watch"):
            return await self._watch(request, kind, namespace, int(request.query["resourceVersion"]))
        items = [found for one, found in self.objects.items() if one.kind is kind and namespace in ("", one.namespace)]
        listed = {"items": items, "metadata": {"resourceVersion": str(self.version)}}
        return web.json_response(listed, dumps=self._text)

    def _discovery(self, path: str, kinds: list[Kind]) -> web.Response:
        groups = {kind.api_version for kind in kinds if "/" in kind.api_version}
        if path == "/api":
            return web.json_response({"versions": ["v1"]})
        if path == "/apis":
            found = [one.split("/") for one in groups]
            named = [(group, {"version": version}) for group, version in found]
            return web.json_response(
                {"groups": [{"name": one, "versions": [at], "preferredVersion": at} for one, at in named]}
            )
        resources = [
            {
                "name": kind.value.plural,
                "singularName": kind.name.lower(),
                "kind": kind.name,
                "namespaced": True,
                "verbs": ["list", "watch", "patch"],
            }
            for kind in kinds
            if kind.value.prefix == path
        ]
        if path == "/api/v1":
            # kopf begins no watch without it.
            namespaces = {"name": "namespaces", "singularName": "namespace", "kind": "Namespace", "namespaced": False}
            resources.append({**namespaces, "verbs": ["list", "watch"]})
        return web.json_response({"resources": resources}, status=200 if resources else 404)

    async def _watch(self, request: web.Request, kind: Kind, namespace: str, since: int) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        transport = request.transport
        assert isinstance(transport, asyncio.WriteTransport)
        self.watches.add(transport)
        try:
            while not transport.is_closing():
                changed = self.changed
                if since < self.forgotten or self.broken:
                    code = 500 if self.broken else 410
                    status = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}
                    await self._send(response, "ERROR", status)
                    return response
                for version, event, reference, manifest in self.history:
                    ours = reference.kind is kind and namespace in ("", reference.namespace)
                    if version > since and ours and not self.hangs:
                        await self._send(response, event, manifest)
                since = since if self.hangs else self.version
                await changed.wait()
        except ConnectionError:
            pass
        finally:
            self.watches.discard(transport)
        return response

    async def _send(self, response: web.StreamResponse, event: str, manifest: Any) -> None:
        await response.write(self._text({"type": event, "object": manifest}).encode() + b"\n")

    def _text(self, said: Any) -> str:
        return json.dumps(said).replace(f'"{DEEP}"', "[" * self.depth + "]" * self.depth)


@dataclass
class Watching:
    """The operator's watches; nothing is decided."""

    server: ApiServer
    credentials: Credentials
    reconciler: Reconciler
    watchdog: Watchdog
    ending: asyncio.Event
    kopf: asyncio.Task[None]

    async def until(self, true: Callable[[], object]) -> None:
        while not true():
            assert not self.kopf.done(), self.kopf
            await asyncio.sleep(0.01)

    async def agrees(self) -> None:
        """Return once all that there is is known, and nothing else."""
        await self.until(lambda: self.reconciler.cache.versions() == self.server.versions())

    async def reconnected(self) -> None:
        """Return once all kinds are watched."""
        # A watch that its client has ended stays with the server until there is a change to tell.
        await self.until(lambda: len([one for one in self.server.watches if not one.is_closing()]) == len(WATCHED))


@asynccontextmanager
async def _watching(
    clock: Any, server: ApiServer, applier: Any = None, namespaces: tuple[str, ...] = ()
) -> AsyncIterator[Watching]:
    await server.start()
    credentials = Credentials(f"http://127.0.0.1:{server.port}")
    credentials.api_key["BearerToken"] = f"Bearer {server.token}"
    reconciler = Reconciler(applier, Cache(), JOB, clock, Metrics(CollectorRegistry()))
    ending = asyncio.Event()
    async with KubeClient(credentials) as client:
        kopf = asyncio.create_task(handlers.watch(reconciler, credentials, namespaces, ending))
        watchdog = Watchdog(client, reconciler, namespaces, clock, clock.now)
        try:
            yield Watching(server, credentials, reconciler, watchdog, ending, kopf)
        finally:
            reconciler.cancel()
            kopf.cancel()
            await asyncio.gather(kopf, return_exceptions=True)
            await server.stop()


Script = Callable[[Watching], Awaitable[None]]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """kopf leaves tasks whose errors nobody has asked for. They are told of when they are collected, with a traceback,
    for which Python 3.11 parses code; within another parse, of a later test's, that is a SystemError."""
    yield
    gc.collect()


@pytest.fixture
def watched(clock: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Script], None]:
    """Runs a script with the watches of three objects."""
    monkeypatch.setattr(handlers, "_RETRY_SECONDS", (0.02,))

    def go(script: Script) -> None:
        async def watching() -> None:
            server = ApiServer()
            for one in (STREAM, POD, MAP):
                server.put(one)
            async with _watching(clock, server) as watching:
                await watching.agrees()
                await watching.reconnected()
                await script(watching)

        run(watching())

    return go


def test_what_is_there_comes_changes_and_goes_is_known(watched: Any) -> None:
    async def script(watching: Watching) -> None:
        other = Reference(Kind.SparkApplication, "lake", "orders-json")
        watching.server.put(other)
        watching.server.put(POD)
        watching.server.remove(MAP)
        await watching.agrees()
        watching.server.remove(STREAM)
        watching.server.put(STREAM)
        await watching.agrees()
        assert watching.server.selectors == set(WATCHED.items())

    watched(script)


def test_nothing_is_missed_when_connections_are_cut(watched: Any) -> None:
    async def script(watching: Watching) -> None:
        for _ in range(3):
            watching.server.cut()
            watching.server.put(POD)
            watching.server.remove(MAP)
            watching.server.put(STREAM)
            await watching.agrees()
            watching.server.put(MAP)
            await watching.reconnected()

    watched(script)


@pytest.mark.parametrize("restarted", [False, True], ids=["410 Gone", "restart"])
def test_what_went_in_a_gap_is_found_once_objects_are_listed_anew(watched: Any, *, restarted: bool) -> None:
    async def script(watching: Watching) -> None:
        watching.reconciler.relisted.clear()
        if restarted:
            await watching.server.stop()
        watching.server.remove(POD)
        watching.server.put(STREAM)
        watching.server.put(MAP)
        watching.server.forget()
        if restarted:
            await watching.server.start()
        watching.server.cut()
        await watching.until(watching.reconciler.relisted.is_set)
        known = watching.reconciler.cache.versions
        await watching.until(lambda: known().items() >= watching.server.versions().items())
        # This is what kopf does not tell of. Once it does, the watchdog need not look for it.
        assert POD in known()
        await watching.watchdog.look()
        assert known() == watching.server.versions()
        watching.server.put(POD)
        await watching.agrees()

    watched(script)


def test_a_watch_that_says_nothing_is_begun_anew(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_WATCH_SECONDS", 0.2)
    monkeypatch.setattr(handlers, "_PATIENCE", 0.1)

    async def script(watching: Watching) -> None:
        watching.server.hangs = True
        watching.server.cut()
        watching.server.put(POD)
        await watching.reconnected()
        watching.server.hangs = False
        await watching.agrees()

    watched(script)


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_an_api_server_that_refuses_is_asked_until_it_does_not(watched: Any, status: int) -> None:
    async def script(watching: Watching) -> None:
        watching.server.refusal = status
        watching.server.cut()
        watching.server.put(POD)
        await asyncio.sleep(0.3)
        assert not watching.kopf.done()
        watching.server.refusal = 0
        await watching.agrees()

    watched(script)


def test_a_token_that_was_renewed_is_taken_up(watched: Any) -> None:
    async def script(watching: Watching) -> None:
        watching.server.token = "second"
        watching.credentials.api_key["BearerToken"] = "Bearer second"
        watching.server.cut()
        watching.server.put(POD)
        await watching.agrees()

    watched(script)


@pytest.mark.parametrize("trouble", ["broken", "missing"])
def test_what_kopf_cannot_go_on_after_ends_the_operator(watched: Any, trouble: str) -> None:
    async def script(watching: Watching) -> None:
        if trouble == "broken":
            watching.server.broken = True
            watching.server.put(POD)
        else:
            watching.server.missing = {Kind.SparkApplication}
            watching.server.cut()
        done, _ = await asyncio.wait([watching.kopf], timeout=60)
        assert done
        assert watching.kopf.exception() is not None

    watched(script)


def test_a_changed_object_that_kopf_does_not_tell_of_is_unhealthy(watched: Any, clock: Any) -> None:
    async def script(watching: Watching) -> None:
        watching.reconciler.ready.set()
        await watching.watchdog.look()
        watching.server.hangs = True
        watching.server.cut()
        watching.server.put(POD)
        await watching.watchdog.look()
        assert watching.watchdog.problems() == [], "it may be on its way"
        await watching.watchdog.look()
        assert watching.watchdog.problems() == [f"the watches have missed changes of 1 objects: {POD}"]
        clock.move(10 * 60)
        assert "could last be listed" in watching.watchdog.problems()[0]

    watched(script)


def test_an_api_server_whose_store_was_put_back_ends_the_operator(watched: Any) -> None:
    """As from a snapshot of etcd: versions begin again from an earlier one, and all that comes looks older."""

    async def script(watching: Watching) -> None:
        server = watching.server
        server.put(MAP)
        before, snapshot = server.version, dict(server.objects)
        for reference in (POD, MAP, STREAM):
            server.put(reference)
        await watching.agrees()
        await watching.watchdog.look()
        server.version, server.objects, server.history = before, snapshot, server.history[:before]
        server.cut()
        server.put(MAP)
        with pytest.raises(StoreWentBackError, match="its store was put back"):
            await watching.watchdog.run()

    watched(script)


def test_a_look_at_many_namespaces_asks_once_for_what_is_known(clock: Any, run: Any) -> None:
    asked, gone = [], []
    here, there = Reference(Kind.Pod, "one", "kept"), Reference(Kind.Pod, "three", "gone")

    def versions() -> dict[Reference, int]:
        asked.append(True)
        return {here: 4, there: 5}

    async def list_versions(kind: Kind, namespace: str, selector: str) -> tuple[dict[Reference, int], int]:
        return ({here: 4} if (kind, namespace) == (here.kind, here.namespace) else {}), 9

    cache = SimpleNamespace(versions=versions, remove=lambda *one: gone.append(one))
    reconciler = SimpleNamespace(
        cache=cache, relisted=asyncio.Event(), ready=asyncio.Event(), left=frozenset(), leave=lambda _: None
    )
    client = SimpleNamespace(list_versions=list_versions)
    watchdog = Watchdog(client, reconciler, ("one", "two", "three"), clock, clock.now)  # type: ignore[arg-type]
    run(watchdog.look())
    assert (asked, gone, watchdog.behind) == ([True], [(there, 9)], {})


def test_decisions_begin_once_all_is_known(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_POLL", timedelta(milliseconds=10))

    async def script(watching: Watching) -> None:
        watching.server.missing = {Kind.ServiceAccount}
        looking = asyncio.create_task(watching.watchdog.run())
        await watching.until(lambda: watching.watchdog.failure)
        assert "in vain: GET /api/v1/serviceaccounts: 404" in watching.watchdog.unready()[0]
        assert not watching.watchdog.served.is_set()
        watching.server.missing = set()
        await watching.until(watching.reconciler.ready.is_set)
        assert watching.watchdog.unready() == []
        looking.cancel()

    watched(script)


@pytest.fixture
def starting(clock: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a script on an operator that begins with what one server has."""
    monkeypatch.setattr(handlers, "_RETRY_SECONDS", (0.02,))
    monkeypatch.setattr(watchdog, "_POLL", timedelta(milliseconds=10))

    def go(server: ApiServer, script: Script, applier: Any = None) -> None:
        async def watching() -> None:
            async with _watching(clock, server, applier) as watching:
                looking = asyncio.create_task(watching.watchdog.run())
                await watching.until(lambda: watching.reconciler.ready.is_set() or looking.done())
                await script(watching)
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)

        run(watching())

    return go


def test_an_object_whose_label_names_no_lakestream_keeps_nobody_waiting(starting: Any) -> None:
    """A selector by a label's name takes an empty one as well."""
    server = ApiServer()
    server.put(STREAM)
    metadata = server._new(MAP)["metadata"]
    server.put(MAP, metadata={**metadata, "labels": {**LABELS, STREAM_LABEL: ""}})

    async def script(watching: Watching) -> None:
        assert watching.reconciler.ready.is_set()
        await watching.agrees()
        for _ in range(2):
            server.put(MAP)
            await watching.agrees()
            await watching.watchdog.look()
        assert (watching.watchdog.behind, watching.watchdog.problems()) == ({}, [])
        server.remove(MAP)
        await watching.agrees()

    starting(server, script, Decided())


@pytest.fixture
def _as_by_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """What the command sets for its process."""

    async def ended(_: Settings) -> None: ...

    monkeypatch.setattr("lakestream_operator.controller.run_controller", ended)
    monkeypatch.setattr(logs, "configure", lambda _: None)
    before, file = sys.getrecursionlimit(), tmp_path / "operator.yaml"
    file.write_text("job: {image: 'lakestream/spark:1', clusterRole: driver}")
    main.run(file)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("_as_by_the_command")
@pytest.mark.parametrize("depth", [1_200, 9_990], ids=["more than Python takes", "all that Kubernetes takes"])
def test_a_lakestream_that_is_nested_deeply_is_told_so_and_nobody_else_is_stopped(starting: Any, depth: int) -> None:
    server, said = ApiServer(depth=depth), Decided()
    other = Reference(Kind.LakeStream, "lake", "clicks")
    for one, nested in ((STREAM, {"x": DEEP}), (other, {})):
        made = server._new(one)
        spec = {**made["spec"], "kubernetes": {"driver": {"template": {"spec": nested}}}}
        server.put(one, spec=spec, metadata={**made["metadata"], "finalizers": [FINALIZER]})

    async def script(watching: Watching) -> None:
        await watching.until(lambda: {"orders", "clicks"} <= said.statuses.keys())
        assert "nested too deeply" in said.statuses["orders"].conditions[0].message
        assert "nested too deeply" not in str(said.statuses["clicks"])
        server.put(STREAM)
        await watching.agrees()

    starting(server, script, said)


class Decided:
    """Takes down in which LakeStreams anything is done."""

    def __init__(self) -> None:
        self.of: set[str] = set()
        self.statuses: dict[str, LakeStreamStatus] = {}

    async def act(self, stream: Any, action: Any, now: Any) -> None:
        self.of.add(stream.namespace)

    async def write_status(self, stream: Any, status: Any) -> None:
        self.statuses[stream.name] = status


def test_a_namespace_that_cannot_be_listed_is_nothing_to_the_others(
    clock: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "_RETRY_SECONDS", (0.02,))
    monkeypatch.setattr(watchdog, "_POLL", timedelta(milliseconds=10))
    monkeypatch.setattr(watchdog, "EVERY", timedelta(milliseconds=50))
    here, there = (Reference(Kind.LakeStream, namespace, "orders") for namespace in ("here", "there"))

    async def watching() -> None:
        server, decided = ApiServer(), Decided()
        server.put(here)
        server.put(there)
        server.forbidden = {"there"}
        async with _watching(clock, server, decided, ("here", "there")) as watching:
            looking = asyncio.create_task(watching.watchdog.run())
            await watching.until(lambda: decided.of == {"here"})
            listed = watching.reconciler.metrics._listed
            assert (watching.watchdog.problems(), listed.collect()[0].samples[0].value) == ([], 0)
            server.forbidden = set()
            await watching.until(lambda: decided.of == {"here", "there"})
            assert listed.collect()[0].samples[0].value == 1
            # Its Role goes, and what is in it cannot be seen any more.
            server.forbidden = {"there"}
            server.cut()
            await watching.until(lambda: watching.reconciler.left == {"there"})
            decided.of.clear()
            for one in (here, there):
                server.put(one)
                watching.reconciler.wake((one.namespace, one.name))
            await watching.until(lambda: decided.of)
            assert decided.of == {"here"}
            server.forbidden = {"here", "there"}
            await watching.until(lambda: watching.watchdog.failure)
            assert "403" in watching.watchdog.failure
            looking.cancel()

    run(watching())


ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "remove"]), st.sampled_from([STREAM, POD, MAP])),
    st.tuples(st.sampled_from(["cut", "forget", "look", "wait"]), st.none()),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, max_size=25))
def test_whatever_happens_all_that_there_is_is_known_in_the_end(watched: Any, actions: list[tuple[str, Any]]) -> None:
    async def script(watching: Watching) -> None:
        for verb, reference in actions:
            match verb:
                case "look":
                    await watching.watchdog.look()
                case "wait":
                    await asyncio.sleep(0.02)
                case _:
                    getattr(watching.server, verb)(*([reference] if reference else []))
        await watching.reconnected()
        known = watching.reconciler.cache.versions
        await watching.until(lambda: known().items() >= watching.server.versions().items())
        await watching.watchdog.look()
        await watching.agrees()

    watched(script)
