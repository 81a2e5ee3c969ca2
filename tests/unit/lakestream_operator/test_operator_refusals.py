"""What the API server refuses: waited out, told once, and nothing to the others. The real reconciler and applier."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lakestream_api import Condition, ConditionStatus, ConditionType, LakeStreamStatus
from lakestream_operator.adapters.applier import Applier
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.errors import ApiError, NameTakenError, RetryLaterError
from lakestream_operator.metrics import Metrics
from lakestream_operator.model import Kind, Reference, Refusal
from lakestream_operator.model.refusal import LAST_RETRY, pause_after
from lakestream_operator.reconciler import Reconciler
from lakestream_operator.testing import ModelApi, Mood, lakestream
from lakestream_operator.testing.cluster import JOB

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("lake", "orders")
STREAM = Reference(Kind.LakeStream, *KEY)
APP = Reference(Kind.SparkApplication, "lake", "orders-json")
ACCOUNT = Reference(Kind.ServiceAccount, "lake", "orders-json")


class Operator:
    """The real loops on an API server in memory, in the event loop's time."""

    def __init__(self, api: ModelApi, *, writers: tuple[str, ...] = ("json",)) -> None:
        self.api = api
        api.clock = self.clock
        api.admit(lakestream(writers=writers))
        cache = Cache()
        self.reconciler = Reconciler(
            Applier(api, cache, "me"), cache, JOB, self.clock, Metrics(CollectorRegistry()), chance=lambda: 0.0
        )
        self.reconciler.ready.set()
        self.reconciler.cache.put(Kind.LakeStream, self.lakestream)

    def clock(self) -> datetime:
        return NOW + timedelta(seconds=asyncio.get_running_loop().time())

    @property
    def lakestream(self) -> dict[str, Any]:
        return self.api.objects[STREAM]

    def condition(self, kind: ConditionType) -> Condition:
        status = LakeStreamStatus.model_validate(self.lakestream["status"])
        return next(one for one in status.conditions if one.type is kind)

    def says(self, kind: ConditionType) -> tuple[bool, str]:
        found = self.condition(kind)
        return found.status is ConditionStatus.TRUE, found.reason

    def events(self, reason: str) -> list[dict[str, Any]]:
        return [
            one
            for reference, one in self.api.objects.items()
            if reference.kind is Kind.Event and one["reason"] == reason
        ]

    def tries(self, verb: str, reference: Reference) -> int:
        return self.api.requests.count((verb, reference))


@pytest.fixture
def api() -> ModelApi:
    return ModelApi(lambda: NOW)


def _played(play: Callable[..., Any], api: ModelApi, script: Callable[[Operator], Any], **arguments: Any) -> None:
    async def playing() -> None:
        operator = Operator(api, **arguments)
        await script(operator)
        await operator.reconciler.close()

    play(playing())


@pytest.mark.parametrize("mood", [Mood.REFUSES, Mood.OVERLOADED, Mood.HANGS])
def test_a_refusal_is_waited_out_and_told_once(play: Any, api: ModelApi, mood: Mood) -> None:
    api.moods = {Kind.SparkApplication: mood}

    async def script(operator: Operator) -> None:
        await asyncio.sleep(300)
        assert operator.tries("create", APP) <= 6 + 4, "after 1, 2, 4, … seconds, a minute at most"
        assert len(api.requests) < 110
        assert operator.says(ConditionType.DEGRADED) == (True, "ApiRefused")
        assert operator.says(ConditionType.READY) == (False, "ApiRefused")
        assert str(APP) in operator.condition(ConditionType.DEGRADED).message
        (event,) = operator.events("ApiRefused")
        assert event["type"] == "Warning"
        assert operator.events("Starting") == []
        api.moods = {}
        await asyncio.sleep(61)
        assert operator.says(ConditionType.DEGRADED) == (False, "AsExpected")
        assert len(operator.events("Starting")) == 1

    _played(play, api, script)


def test_a_refusal_of_one_writer_is_nothing_to_the_other(play: Any, api: ModelApi) -> None:
    theirs = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "orders-json", "namespace": "lake"}}
    before = api.admit(theirs)
    kept = {**before, "metadata": dict(before["metadata"])}

    async def script(operator: Operator) -> None:
        await asyncio.sleep(60)
        assert Reference(Kind.SparkApplication, "lake", "orders-hudi") in api.objects
        assert APP not in api.objects
        assert api.objects[ACCOUNT] == kept, "what is not ours is not touched"
        assert operator.says(ConditionType.DEGRADED) == (True, "NameTaken")
        assert "spec.kubernetes.serviceAccount" in operator.condition(ConditionType.DEGRADED).message
        assert len(operator.events("NameTaken")) == 1

    _played(play, api, script, writers=("json", "hudi"))


def test_a_bug_is_forgotten_while_its_namespace_cannot_be_listed(
    play: Any, api: ModelApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise TypeError("a bug")

    async def script(operator: Operator) -> None:
        await asyncio.sleep(30)
        with monkeypatch.context() as patch:
            patch.setattr("lakestream_operator.reconciler.decide", fails)
            operator.reconciler.wake(KEY)
            await asyncio.sleep(20)
            assert operator.says(ConditionType.DEGRADED) == (True, "CycleFailed")
            operator.reconciler.leave({"lake"})
            await asyncio.sleep(120)
        operator.reconciler.leave(set())
        await asyncio.sleep(120)
        assert operator.says(ConditionType.DEGRADED)[1] != "CycleFailed"

    _played(play, api, script)


def test_an_application_of_the_name_that_is_not_ours_is_told_of(play: Any, api: ModelApi) -> None:
    metadata = {"name": "orders-json", "namespace": "lake"}
    api.admit({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": metadata})

    async def script(operator: Operator) -> None:
        await asyncio.sleep(120)
        assert operator.says(ConditionType.DEGRADED) == (True, "NameTaken")
        assert operator.events("Starting") == []
        assert "labels" not in api.objects[APP]["metadata"]
        assert operator.tries("create", APP) < 10
        api.remove(APP)
        await asyncio.sleep(61)
        assert operator.says(ConditionType.DEGRADED) == (False, "AsExpected")

    _played(play, api, script)


def test_a_definition_of_applications_that_is_too_old_is_told_by_what_it_lacks(play: Any, api: ModelApi) -> None:
    api.lacks = {"template"}

    async def script(operator: Operator) -> None:
        await asyncio.sleep(300)
        assert APP not in api.objects, "its driver would find no document"
        assert operator.says(ConditionType.DEGRADED) == (True, "ApiRefused")
        told = operator.condition(ConditionType.DEGRADED).message
        assert "spec.driver.template, spec.executor.template" in told
        assert "older than that of the Spark Operator 2.5" in told
        assert operator.tries("create", APP) <= 6 + 4
        assert len(operator.events("ApiRefused")) == 1
        assert operator.events("Starting") == []
        api.lacks = set()
        await asyncio.sleep(61)
        assert APP in api.objects
        assert operator.says(ConditionType.DEGRADED) == (False, "AsExpected")

    _played(play, api, script)


def test_another_spec_is_tried_at_once(play: Any, api: ModelApi) -> None:
    api.moods = {Kind.SparkApplication: Mood.REFUSES}

    async def script(operator: Operator) -> None:
        await asyncio.sleep(200)
        before = operator.tries("create", APP)
        for _ in range(20):
            operator.reconciler.wake(KEY)
            await asyncio.sleep(1)
        assert operator.tries("create", APP) <= before + 1, "whatever wakes it"
        api.moods = {}
        operator.lakestream["spec"]["trigger"]["interval"] = "20s"
        operator.lakestream["metadata"]["generation"] += 1
        api.touch(operator.lakestream)
        operator.reconciler.cache.put(Kind.LakeStream, operator.lakestream)
        await asyncio.sleep(2)
        assert APP in api.objects

    _played(play, api, script)


def test_a_finalizer_that_is_refused_is_told_of(play: Any) -> None:
    class Webhook(ModelApi):
        async def merge(self, reference: Reference, patch: Any, subresource: str = "") -> Any:
            if not subresource:
                raise ApiError(403, "admission webhook denied the request")
            return await super().merge(reference, patch, subresource)

    async def script(operator: Operator) -> None:
        await asyncio.sleep(30)
        assert operator.says(ConditionType.DEGRADED) == (True, "ApiRefused")
        assert operator.says(ConditionType.READY) == (False, "ApiRefused")
        assert len(operator.events("ApiRefused")) == 1

    _played(play, Webhook(lambda: NOW), script)


@pytest.mark.parametrize("begun", [False, True])
def test_a_bug_that_stays_is_told_once(
    play: Any, api: ModelApi, monkeypatch: pytest.MonkeyPatch, *, begun: bool
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise TypeError("unhashable type: 'list'")

    async def script(operator: Operator) -> None:
        if begun:
            await asyncio.sleep(30)
        with monkeypatch.context() as patch:
            patch.setattr("lakestream_operator.reconciler.decide", fails)
            operator.reconciler.wake(KEY)
            await asyncio.sleep(0.5)
            assert operator.events("CycleFailed") == [], "it may be a race"
            await asyncio.sleep(120)
            assert operator.says(ConditionType.DEGRADED) == (True, "CycleFailed")
            assert "TypeError: unhashable type: 'list'" in operator.condition(ConditionType.DEGRADED).message
            assert operator.lakestream["status"]["phase"] == ("Degraded" if begun else "Failed")
            assert len(operator.events("CycleFailed")) == 1
            assert operator.tries("merge status", STREAM) < 10
        await asyncio.sleep(61)
        assert operator.says(ConditionType.DEGRADED)[1] != "CycleFailed"

    _played(play, api, script)


def test_a_bug_that_cannot_be_told_is_outlived(play: Any, api: ModelApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(operator: Operator) -> None:
        with monkeypatch.context() as patch:
            for name in ("act", "write_status"):
                patch.setattr(Applier, name, lambda *_: 1 / 0)
            await asyncio.sleep(120)
        await asyncio.sleep(61)
        assert APP in api.objects

    _played(play, api, script)


def test_a_status_that_is_refused_stops_nothing(play: Any, api: ModelApi) -> None:
    api.moods = {Kind.LakeStream: Mood.REFUSES}

    async def script(operator: Operator) -> None:
        operator.lakestream["metadata"]["finalizers"] = ["lakestream.dev/drain"]
        api.touch(operator.lakestream)
        operator.reconciler.cache.put(Kind.LakeStream, operator.lakestream)
        await asyncio.sleep(300)
        assert APP in api.objects
        assert operator.tries("merge status", STREAM) <= 6 + 5

    _played(play, api, script)


def test_an_answer_that_never_comes_may_have_had_its_effect(play: Any, api: ModelApi) -> None:
    api.moods = {Kind.SparkApplication: Mood.SWALLOWS}

    async def script(operator: Operator) -> None:
        await asyncio.sleep(2)
        uid = api.objects[APP]["metadata"]["uid"]
        api.moods = {}
        await asyncio.sleep(60)
        assert api.objects[APP]["metadata"]["uid"] == uid

    _played(play, api, script)


def test_pauses_double_up_to_a_minute_and_no_two_are_alike() -> None:
    assert [pause_after(one, 0).total_seconds() for one in (1, 2, 3, 7, 100)] == [1, 2, 4, 60, 60]
    assert pause_after(1, 1) == timedelta(seconds=1.5)
    assert pause_after(1, 0, timedelta(minutes=1.5)) == timedelta(minutes=1.5), "the API server knows best"
    assert pause_after(1, 0, timedelta(hours=1)) == timedelta(minutes=2), "a proxy does not"
    assert pause_after(9, 0, timedelta(seconds=5)) == LAST_RETRY


def test_a_refusal_is_counted_anew_for_another_spec() -> None:
    first = Refusal.of(ApiError(403, "no."), (1, ""), None, NOW, 0)
    second = Refusal.of(ApiError(403, "no."), (1, ""), first, NOW, 0)
    third = Refusal.of(ApiError(403, "no."), (1, ""), second, NOW, 0)
    assert [(one.tries, one.told, one.is_new) for one in (first, second, third)] == [
        (1, False, False),
        (2, True, True),
        (3, True, False),
    ]
    other = Refusal.of(RetryLaterError("busy", timedelta(seconds=30)), (2, ""), third, NOW, 0)
    assert (other.tries, other.retry_at) == (1, NOW + timedelta(seconds=30))
    assert other.holds((2, ""), NOW)
    assert not other.holds((2, "now"), NOW)
    assert not other.holds((2, ""), other.retry_at)
    assert not other.holds((2, ""), NOW - timedelta(seconds=1)), "the clock was put back"
    assert Refusal.of(NameTakenError("taken"), (1, ""), None, NOW, 0).reason == "NameTaken"
