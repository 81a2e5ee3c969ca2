"""The client and the cache, against an API server that answers as told."""

import logging
import random
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakestream_api.names import MANAGED_BY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.adapters.credentials import Credentials
from lakestream_operator.clock import ServerClock, steady_clock
from lakestream_operator.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    NotServedError,
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
            found = {Reference(Kind.Pod, "lake", "a"): 1, Reference(Kind.Pod, "lake", "b"): 1}
            assert await client.list_versions(Kind.Pod, None, "a=b") == (found, 11)

    run(listing())
    assert [query.get("continue") for _, _, query, _ in api.requests] == [None, "next"]
    assert {query["labelSelector"] for _, _, query, _ in api.requests} == {"a=b"}


def test_an_empty_list_of_metadata_has_no_items(api: Any, run: Any) -> None:
    api.on("GET", PODS, (200, {"items": None, "metadata": {"resourceVersion": "7"}}))

    async def listing() -> None:
        async with api.client() as client:
            assert await client.list_versions(Kind.Pod, None, "") == ({}, 7)

    run(listing())


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, ForbiddenError),
        (403, ForbiddenError),
        (404, NotFoundError),  # by a Status
        (409, ConflictError),
        (410, ApiError),
        (422, InvalidError),
        (400, ApiError),
        (429, RetryLaterError),
        (500, RetryLaterError),
        (503, RetryLaterError),
    ],
)
def test_answers_become_errors_that_say_what_to_do(api: Any, run: Any, status: int, error: type[OperatorError]) -> None:
    api.on("GET", "/api/v1/namespaces/lake/pods/orders-json-driver", (status, {"kind": "Status", "message": "because"}))

    async def getting() -> None:
        async with api.client() as client:
            with pytest.raises(error, match="because"):
                await client.get(POD)

    run(getting())


@pytest.mark.parametrize(
    ("header", "after"),
    [
        ("7", timedelta(seconds=7)),
        ("", None),
        ("Sun, 06 Nov 1994", None),
        ("9" * 5000, timedelta(seconds=999_999_999)),
    ],
    ids=["some", "none", "a date", "nonsense"],
)
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


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (200, "<html>Sign in</html>", RetryLaterError),
        (200, None, RetryLaterError),
        (200, ["Sign in"], RetryLaterError),
        (503, "Sign in, upstream is away", RetryLaterError),
        (404, "Sign in, there is no such page", NotServedError),
        (404, {"message": "Sign in, there is no such page"}, NotServedError),
        (403, ["Sign in"], ForbiddenError),
    ],
)
def test_what_a_proxy_says_is_an_error_like_any_other(
    api: Any, run: Any, status: int, answer: Any, error: type[OperatorError]
) -> None:
    api.on("GET", "/api/v1/namespaces/lake/pods/orders-json-driver", (status, answer))

    async def getting() -> None:
        async with api.client() as client:
            with pytest.raises(error, match="Sign in" if answer else "null"):
                await client.get(POD)

    run(getting())


@pytest.mark.parametrize(
    ("date", "answer", "time"),
    [
        ("Thu, 01 Jan 2026 00:12:00 GMT", {}, datetime(2026, 1, 1, 0, 12, tzinfo=UTC)),
        ("Wed, 31 Dec 2025 23:58:00 GMT", {}, datetime(2025, 12, 31, 23, 58, tzinfo=UTC)),
        ("Thu, 01 Jan 2026 00:00:04 GMT", {}, datetime(2026, 1, 1, tzinfo=UTC)),
        ("Thu, 01 Jan 2026 00:12:00 GMT", "Sign in", datetime(2026, 1, 1, tzinfo=UTC)),
        ("soon", {}, datetime(2026, 1, 1, tzinfo=UTC)),
    ],
    ids=["behind", "ahead", "right", "a proxy's", "no time"],
)
def test_answers_tell_the_time(api: Any, run: Any, clock: Any, date: str, answer: Any, time: datetime) -> None:
    api.on("GET", "/api/v1/namespaces/lake/pods/orders-json-driver", (200, answer))
    api.headers = {"Date": date}
    servers = ServerClock(clock)

    async def getting() -> None:
        async with api.client(servers) as client:
            with suppress(RetryLaterError):
                await client.get(POD)

    run(getting())
    assert servers() == time
    clock.move(60)
    assert servers() == time + timedelta(minutes=1)


@pytest.mark.parametrize("seconds", [3, 400, -400], ids=["late", "after a freeze", "the clock is set meanwhile"])
def test_an_answer_that_took_long_tells_no_time(clock: Any, seconds: float) -> None:
    servers = ServerClock(clock)
    asked_at = servers()
    clock.move(seconds)
    servers.hear(asked_at - timedelta(minutes=2), asked_at)
    assert servers() == clock.now
    servers.hear(asked_at, servers())
    assert servers() == (asked_at if abs(seconds) > 5 else clock.now)


def test_of_two_servers_whose_clocks_differ_the_first_counts(clock: Any, caplog: Any) -> None:
    servers = ServerClock(clock)
    for step in range(600):
        servers.hear(clock.now - timedelta(minutes=1 + step % 2), servers())
        assert servers() == clock.now - timedelta(minutes=1)
        clock.move(0.5)
    assert [one.getMessage() for one in caplog.records] == [
        "this node's clock is 1m ahead of the API server's, which is gone by from now on"
    ]


@pytest.mark.parametrize("wrong", [-180, 180])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_of_three_servers_the_one_whose_clock_is_wrong_counts_for_a_minute_at_most(
    clock: Any, first: int, wrong: int
) -> None:
    servers = ServerClock(clock)
    for step in range(600):
        behind = wrong if (step - first) % 3 == 0 else 0
        servers.hear(clock.now - timedelta(seconds=behind), servers())
        assert step < 12 or servers() == clock.now
        clock.move(5)


def test_a_third_of_answers_in_any_order_moves_nothing(clock: Any) -> None:
    chance = random.Random(1)
    servers = ServerClock(clock)
    servers.hear(clock.now, clock.now)
    for _ in range(7200):
        clock.move(0.5)
        servers.hear(clock.now + timedelta(minutes=3 if chance.random() < 1 / 3 else 0), servers())
        assert servers() == clock.now


@pytest.mark.parametrize("seconds", [0.01, 5, 20, 90], ids=str)
def test_another_time_counts_however_often_answers_come(clock: Any, seconds: float) -> None:
    servers = ServerClock(clock)
    for ahead in (0, 7):
        for _ in range(max(4, round(61 / seconds))):
            servers.hear(clock.now + timedelta(minutes=ahead), servers())
            clock.move(seconds)
        assert servers() == clock.now + timedelta(minutes=ahead)


def test_who_sets_the_clock_of_the_node_moves_nothing(clock: Any) -> None:
    passed = [7.0]
    steady = steady_clock(clock, lambda: passed[0])
    before = steady()
    assert before == clock.now
    clock.move(720)
    assert steady() == before
    passed[0] += 1.5
    assert steady() == before + timedelta(seconds=1.5)


def test_another_time_counts_once_most_answers_have_told_it_for_a_while(clock: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    servers = ServerClock(clock)
    moved = []
    for behind in (0, -120, 2):
        for _ in range(60):
            before = servers()
            servers.hear(clock.now - timedelta(seconds=behind), servers())
            moved += [(servers() - before).total_seconds()] if servers() != before else []
            clock.move(1)
    assert moved == [120, -120]
    assert [one.getMessage() for one in caplog.records] == [
        "this node's clock is 2m behind the API server's, which is gone by from now on",
        "this node's clock agrees with the API server's again",
    ]


def test_no_answer_is_one_to_wait_for(run: Any) -> None:
    async def getting() -> None:
        async with KubeClient(Credentials("http://127.0.0.1:1")) as client:
            with pytest.raises(RetryLaterError, match="orders-json-driver"):
                await client.get(POD)

    run(getting())


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
    assert woken == [("lake", "orders")]


def test_what_took_the_name_of_one_that_went_is_not_forgotten_with_it() -> None:
    cache = Cache()
    cache.put(Kind.Pod, _pod(version=7, uid="another"))
    cache.remove(POD, 6)
    assert cache.versions() == {POD: 7}
    cache.remove(POD, 7)
    assert cache.versions() == {}


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


AS_IN_THE_IMAGE = """
import sys

class Removed:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("kubernetes.") and (".models." in name or ".api." in name):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Removed())
import lakestream_operator.controller
"""


def test_the_operator_does_without_the_models_of_the_package_kubernetes() -> None:
    subprocess.run([sys.executable, "-c", AS_IN_THE_IMAGE], check=True)
