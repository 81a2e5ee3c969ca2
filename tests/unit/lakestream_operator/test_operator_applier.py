"""What is written to the API server, and how."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lakestream_api import LakeStreamStatus
from lakestream_operator.adapters.applier import Applier
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.errors import ConflictError, NameTakenError, RetryLaterError
from lakestream_operator.model import Apply, Create, Delete, Emit, Finalize, Kind, Reference
from lakestream_operator.observer import FINALIZER, stream_of
from lakestream_operator.testing import lakestream
from lakestream_operator.testing.api import ModelApi

NOW = datetime(2026, 1, 1, tzinfo=UTC)
APPS = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/lake/sparkapplications"
STREAM = "/apis/lakestream.dev/v1alpha1/namespaces/lake/lakestreams/orders"
APP = Reference(Kind.SparkApplication, "lake", "orders-json")
OURS = {
    "lakestream.dev/stream": "orders",
    "lakestream.dev/writer": "json",
    "app.kubernetes.io/managed-by": "lakestream-operator",
}
MANIFEST = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {
        "name": "orders-json",
        "namespace": "lake",
        "uid": "app-1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": OURS,
    },
}


def _stream(**metadata: Any) -> Any:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1", "resourceVersion": "3", **metadata}
    return stream_of(manifest)


def _act(api: Any, run: Any, action: Any, stream: Any = None) -> Cache:
    cache = Cache()

    async def acting() -> None:
        async with api.client() as client:
            await Applier(client, cache, "me").act(stream or _stream(), action, NOW)

    run(acting())
    return cache


def test_an_application_that_exists_already_is_not_changed(api: Any, run: Any) -> None:
    api.on("POST", APPS, (409, {"message": "exists"}))
    api.on("GET", f"{APPS}/orders-json", (200, MANIFEST))
    cache = _act(api, run, Create(MANIFEST))
    assert [method for method, *_ in api.requests] == ["POST", "GET"]
    assert cache.writers(("lake", "orders"))["json"].application is not None


def test_what_admission_changes_of_an_application_is_its_own_matter(api: Any, run: Any) -> None:
    spec = {"image": "a", "driver": {"cores": 1, "memory": "1g", "labels": {}}, "sparkConf": {"a": "b"}, "deps": {}}
    other = {"image": "mirror/a", "driver": {"cores": 2, "memory": "1g"}, "sparkConf": {}, "more": 1}
    api.on("POST", APPS, (201, {**MANIFEST, "spec": other}))
    cache = _act(api, run, Create({**MANIFEST, "spec": spec}))
    assert cache.writers(("lake", "orders"))["json"].application is not None
    assert api.sent("DELETE") == []


def test_apply_takes_over_what_others_have_set(api: Any, run: Any) -> None:
    api.on("PATCH", f"{APPS}/orders-json", (200, MANIFEST))
    cache = _act(api, run, Apply(MANIFEST))
    (_, _, _, _), (_, _, query, _) = api.requests
    assert query == {"fieldManager": "lakestream-operator", "force": "true"}
    assert len(cache) == 1


@pytest.mark.parametrize(
    "labels",
    [{}, {"lakestream.dev/stream": "orders"}, OURS | {"lakestream.dev/stream": "x"}],
    ids=["none", "not managed by us", "of another LakeStream"],
)
@pytest.mark.parametrize("action", [Apply(MANIFEST), Apply(MANIFEST, "app-0"), Create(MANIFEST)], ids=str)
def test_what_is_not_ours_is_not_touched(api: Any, run: Any, labels: Any, action: Any) -> None:
    foreign = {**MANIFEST, "metadata": {**MANIFEST["metadata"], "labels": labels}}
    api.on("GET", f"{APPS}/orders-json", (200, foreign))
    api.on("POST", APPS, (409, {"message": "exists"}))
    api.on("PATCH", f"{APPS}/orders-json", (409, {"message": "another uid"}))
    with pytest.raises(NameTakenError, match="SparkApplication lake/orders-json is not of this LakeStream"):
        _act(api, run, action)
    assert {body["metadata"].get("uid") for body in api.sent("PATCH")} <= {"app-0"}


def test_an_object_of_ours_that_was_made_anew_is_applied_to(api: Any, run: Any) -> None:
    api.on("PATCH", f"{APPS}/orders-json", (409, {"message": "another uid"}), (200, MANIFEST))
    api.on("GET", f"{APPS}/orders-json", (200, MANIFEST))
    assert len(_act(api, run, Apply(MANIFEST, "app-0"))) == 1
    assert [body["metadata"]["uid"] for body in api.sent("PATCH")] == ["app-0", "app-1"]


def test_only_the_object_that_was_meant_is_deleted(api: Any, run: Any) -> None:
    api.on("DELETE", f"{APPS}/orders-json", (409, {"message": "another uid"}))
    api.on("GET", f"{APPS}/orders-json", (200, MANIFEST))
    cache = _act(api, run, Delete(APP, "app-0"))
    assert api.sent("DELETE")[0]["preconditions"] == {"uid": "app-0"}
    assert len(cache) == 1, "the one that has the name is seen"


GONE = (404, {"kind": "Status", "message": "gone"})


@pytest.mark.parametrize("answer", [GONE, (200, {"kind": "Status", "status": "Success"})])
def test_what_is_deleted_is_forgotten_at_once(api: Any, run: Any, answer: Any) -> None:
    api.on("DELETE", f"{APPS}/orders-json", answer)
    assert len(_act(api, run, Delete(APP, "app-1"))) == 0


@pytest.mark.parametrize(
    ("before", "present", "after"),
    [(["theirs"], True, ["theirs", FINALIZER]), (["theirs", FINALIZER], False, ["theirs"])],
)
def test_finalizers_of_others_stay(api: Any, run: Any, before: list[str], present: bool, after: list[str]) -> None:
    api.on("PATCH", STREAM, (200, _stream().manifest))
    _act(api, run, Finalize(present), _stream(finalizers=before))
    assert api.sent("PATCH") == [{"metadata": {"resourceVersion": "3", "finalizers": after}}]


def test_a_finalizer_is_not_written_over_a_change(api: Any, run: Any) -> None:
    api.on("PATCH", STREAM, (409, {"message": "changed"}))
    with pytest.raises(ConflictError):
        _act(api, run, Finalize(True))


def test_an_event_is_about_the_lakestream_and_fits(api: Any, run: Any) -> None:
    api.on("POST", "/api/v1/namespaces/lake/events", (201, {}))
    _act(api, run, Emit("DriverFailed", "x" * 5000, warning=True))
    (event,) = api.sent("POST")
    assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == ("LakeStream", "uid-1")
    assert (event["type"], event["reason"], len(event["message"])) == ("Warning", "DriverFailed", 1024)


def test_an_event_that_cannot_be_told_stops_nothing(api: Any, run: Any) -> None:
    api.on("POST", "/api/v1/namespaces/lake/events", (403, {"message": "no"}))
    _act(api, run, Emit("DriverFailed", "x"))


def test_a_status_is_written_by_itself(api: Any, run: Any) -> None:
    api.on("PATCH", f"{STREAM}/status", (200, _stream().manifest))

    async def writing() -> None:
        async with api.client() as client:
            await Applier(client, Cache(), "me").write_status(_stream(), LakeStreamStatus(observed_generation=4))

    run(writing())
    ((body),) = api.sent("PATCH")
    assert body["metadata"] == {"uid": "uid-1"}, "that of another one of the name is none of its business"
    assert body["status"]["observedGeneration"] == 4
    assert body["status"]["lag"] is None, "what is not known any more is removed"


@pytest.mark.parametrize("answer", [(404, {"message": "no such page"}), (404, "no such page")], ids=str)
def test_what_a_proxy_does_not_know_is_not_forgotten(api: Any, run: Any, answer: Any) -> None:
    api.on("PATCH", f"{STREAM}/status", answer)
    api.on("DELETE", f"{APPS}/orders-json", answer)
    cache = Cache()
    cache.put(Kind.LakeStream, _stream().manifest)
    cache.put(Kind.SparkApplication, MANIFEST)

    async def writing() -> None:
        async with api.client() as client:
            applier = Applier(client, cache, "me")
            with pytest.raises(RetryLaterError):
                await applier.write_status(_stream(), LakeStreamStatus())
            with pytest.raises(RetryLaterError):
                await applier.act(_stream(), Delete(APP, "app-1"), NOW)

    run(writing())
    assert len(cache) == 2


def test_a_recreated_lakestream_is_not_told_its_predecessors_status(run: Any) -> None:
    model = ModelApi(lambda: NOW)
    before = stream_of(model.admit(lakestream()))
    made = model.admit(lakestream())
    with pytest.raises(ConflictError):
        run(Applier(model, Cache(), "me").write_status(before, LakeStreamStatus()))
    assert "status" not in made
