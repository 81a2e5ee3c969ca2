"""The client, the reflector and the cache, against an API server that answers as told."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import pytest

from lakestream_api.names import MANAGED_BY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.adapters.reflector import Reflector
from lakestream_operator.errors import (
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    OperatorError,
    RetryLaterError,
)
from lakestream_operator.model import Kind, Reference

PODS = "/api/v1/pods"
POD = Reference(Kind.Pod, "lake", "orders-json-driver")


def _pod(name: str = "orders-json-driver", version: int = 1, **metadata: Any) -> dict[str, Any]:
    labels = {STREAM_LABEL: "orders", WRITER_LABEL: "json", "app.kubernetes.io/managed-by": MANAGED_BY}
    return {
        "metadata": {
            "name": name,
            "namespace": "lake",
            "uid": f"uid of {name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            **metadata,
        },
        "spec": {"containers": ["x" * 1000]},
        "status": {"phase": "Pending"},
    }


def _listed(*items: dict[str, Any], version: int = 10, following: str = "") -> tuple[int, Any]:
    return 200, {"items": list(items), "metadata": {"resourceVersion": str(version), "continue": following}}


def test_a_list_is_read_page_by_page(api: Any, run: Any) -> None:
    api.on("GET", PODS, _listed(_pod("a"), following="next"), _listed(_pod("b"), version=11))

    async def listing() -> None:
        async with api.client() as client:
            found, version = await client.list_all(Kind.Pod, None, "a=b")
            assert [one["metadata"]["name"] for one in found] == ["a", "b"]
            assert version == "11"

    run(listing())
    assert [query.get("continue") for _, _, query, _ in api.requests] == [None, "next"]
    assert {query["labelSelector"] for _, _, query, _ in api.requests} == {"a=b"}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, ForbiddenError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, ExpiredError),
        (422, InvalidError),
        (400, ApiError),
        (429, RetryLaterError),
        (500, RetryLaterError),
        (503, RetryLaterError),
    ],
)
def test_answers_become_errors_that_say_what_to_do(api: Any, run: Any, status: int, error: type[OperatorError]) -> None:
    api.on("GET", "/api/v1/namespaces/lake/pods/orders-json-driver", (status, {"message": "because"}))

    async def getting() -> None:
        async with api.client() as client:
            with pytest.raises(error, match="because"):
                await client.get(POD)

    run(getting())


@pytest.mark.parametrize(("header", "after"), [("7", timedelta(seconds=7)), ("", None), ("Sun, 06 Nov 1994", None)])
def test_an_api_server_says_how_long_it_wants_to_be_left_alone(
    api: Any, run: Any, header: str, after: timedelta | None
) -> None:
    api.on("GET", "/api/v1/namespaces/lake/pods/orders-json-driver", (429, {"message": "too many"}))
    api.headers = {"Retry-After": header}

    async def getting() -> None:
        async with api.client() as client:
            with pytest.raises(RetryLaterError) as caught:
                await client.get(POD)
        assert caught.value.after == after

    run(getting())


def test_no_answer_is_one_to_wait_for(run: Any) -> None:
    async def getting() -> None:
        async with KubeClient(Credentials("http://127.0.0.1:1", None)) as client:
            with pytest.raises(RetryLaterError, match="orders-json-driver"):
                await client.get(POD)

    run(getting())


def test_a_watch_takes_lines_of_any_length(api: Any, run: Any) -> None:
    long = _pod(annotations={"long": "x" * 600_000})
    api.on(
        "watch GET", PODS, (200, [{"type": "ADDED", "object": long}, {"type": "DELETED", "object": _pod(version=2)}])
    )

    async def watching() -> list[str]:
        async with api.client() as client:
            return [event async for event, _ in client.watch(Kind.Pod, None, "", "1", 5)]

    assert run(watching()) == ["ADDED", "DELETED"]


def test_a_watch_that_is_too_old_says_so(api: Any, run: Any) -> None:
    api.on("watch GET", PODS, (200, [{"type": "ERROR", "object": {"code": 410, "message": "too old"}}]))

    async def watching() -> None:
        async with api.client() as client:
            with pytest.raises(ExpiredError):
                async for _ in client.watch(Kind.Pod, None, "", "1", 5):
                    pass

    run(watching())


def test_what_was_deleted_in_a_gap_is_missed_no_longer_than_the_gap(api: Any, run: Any, clock: Any) -> None:
    gone = [{"type": "ERROR", "object": {"code": 410, "message": "too old"}}]
    api.on("GET", PODS, _listed(_pod("a"), _pod("b")), _listed(_pod("b"), version=20))
    api.on("watch GET", PODS, (200, gone), (200, [{"type": "ADDED", "object": _pod("c", 21)}]))
    woken: list[Any] = []

    async def reflecting() -> None:
        cache = Cache(wake=woken.append)
        async with api.client() as client:
            reflector = Reflector(client, cache, clock, Kind.Pod, None)
            task = asyncio.create_task(reflector.run())
            while {one.name for one in cache._keys} != {"b", "c"}:
                await asyncio.sleep(0.01)
            assert reflector.synced.is_set()
            assert reflector.heard_at == clock.now
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    run(reflecting())
    assert set(woken) == {("lake", "orders")}


def test_an_answer_that_is_older_than_what_is_known_changes_nothing() -> None:
    cache = Cache()
    cache.put(Kind.Pod, _pod(version=5, deletionTimestamp="2026-01-01T00:00:01Z"))
    cache.put(Kind.Pod, _pod(version=4))
    pod = cache.writers(("lake", "orders"))["json"].driver_pod
    assert pod is not None
    assert pod.deleting


def test_what_is_known_already_wakes_nobody() -> None:
    woken: list[Any] = []
    cache = Cache(wake=woken.append)
    cache.put(Kind.Pod, _pod(version=5))
    cache.put(Kind.Pod, _pod(version=5))
    cache.replace(Kind.Pod, None, [_pod(version=5)])
    assert woken == [("lake", "orders")]


def test_an_object_that_loses_its_label_is_nobodys() -> None:
    cache = Cache()
    cache.put(Kind.Pod, _pod())
    cache.put(Kind.Pod, _pod(version=2, labels={}))
    assert (len(cache), cache.writers(("lake", "orders"))) == (0, {})


def test_what_nobody_looks_at_is_not_kept() -> None:
    cache = Cache()
    cache.put(Kind.Pod, _pod(managedFields=[{"manager": "x"}]))
    (kept,) = cache._objects["lake", "orders"].values()
    assert "spec" not in kept
    assert "managedFields" not in kept["metadata"]
