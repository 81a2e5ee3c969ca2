"""LakeStreams that come to name one place, in any order, as their specs are edited, spoilt and deleted."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from lakestream_api import LakeStreamStatus
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.metrics import Metrics
from lakestream_operator.model import Apply, Create, Delete, Finalize, Kind, Reference, Stream
from lakestream_operator.observer import FINALIZER
from lakestream_operator.reconciler import Reconciler
from lakestream_operator.render import plan_of
from lakestream_operator.testing import lakestream
from lakestream_operator.testing.cluster import JOB

NAMES, PLACES = ("a", "b", "c"), ("one", "two")
MOVES = ("to one", "to two")
EDITS = (*PLACES, *MOVES, "suspended", "resumed", "invalid", "crashes", "gone")
AWAY = [("a", "to one"), ("a", "suspended"), ("a", "to two"), ("b", "to one")]
"""One that is suspended makes room for another."""


class Api:
    """Makes of each action what the API server would. There is no Spark Operator: what is created stays as it is."""

    def __init__(self, latency: float) -> None:
        self.cache = Cache()
        self._latency = latency
        self._version = 0
        self.most: Counter[str] = Counter()
        """Of each place, how many LakeStreams had an application for it at once."""
        self._holders: dict[str, str] = {}
        """Of each place, who has written it last and not let go of it since."""
        self.ousted: list[tuple[str, str, str]] = []
        """Of whom a place was taken that he held, and by whom."""

    def put(self, manifest: Any) -> None:
        self._version += 1
        metadata = {"uid": f"uid {self._version}", "creationTimestamp": "2026-01-01T00:00:00Z", **manifest["metadata"]}
        metadata |= {"resourceVersion": str(self._version)}
        self.cache.put(Kind[manifest["kind"]], {**manifest, "metadata": metadata})

    def remove(self, reference: Reference) -> None:
        self._version += 1
        self.cache.remove(reference, self._version)

    async def act(self, stream: Stream, action: Any, now: Any) -> None:
        await asyncio.sleep(self._latency)
        match action:
            case Apply(manifest):
                self.put(manifest)
            case Create(manifest):
                self.put({**manifest, "metadata": {"generation": 1, **manifest["metadata"]}})
                for place in PLACES:
                    self.most[place] = max(self.most[place], len(self.written(place)))
                for place in self._places(stream.name):
                    self._hold(place, stream.name)
            case Delete(reference):
                self.remove(reference)
            case Finalize(present=True):
                metadata = {**stream.manifest["metadata"], "finalizers": [FINALIZER]}
                self.put({**stream.manifest, "metadata": metadata})
            case Finalize(present=False):
                self._collect(stream.name)

    def _collect(self, name: str) -> None:
        """Kubernetes's garbage collection."""
        for one in self.cache.versions():
            if one.name == name or one.name.startswith(f"{name}-"):
                self.remove(one)

    async def write_status(self, stream: Stream, status: LakeStreamStatus) -> None:
        await asyncio.sleep(self._latency)
        self.put({**stream.manifest, "status": status.model_dump(mode="json", by_alias=True)})

    def written(self, place: str) -> set[str]:
        """The LakeStreams that have an application for a place."""
        return {name for name in NAMES if place in self._places(name)}

    def _places(self, name: str) -> set[str]:
        documents = [one.document for one in self.cache.writers(("lake", name)).values() if one.application]
        paths = [plan_of(one).writer.output.path for one in documents if one]
        return {path.removeprefix("s3a://lake/") for path in paths}

    def _hold(self, place: str, name: str) -> None:
        holder = self._holders.get(place, name)
        if holder != name:
            self.ousted.append((place, holder, name))
        if not self._lets_go(name, place):
            self._holders[place] = name

    def _lets_go(self, name: str, place: str) -> bool:
        """Whether a LakeStream is to write a place no more."""
        found = self.cache.lakestream(("lake", name))
        if found is None or "deletionTimestamp" in found["metadata"] or found["spec"].get("suspend"):
            return True
        return not found["spec"].get("kubernetes") and not self.wants(name, place)

    def wants(self, name: str, place: str) -> bool:
        """Whether the spec of a LakeStream that stays can be read, and names a place."""
        found = self.cache.lakestream(("lake", name))
        if found is None or "deletionTimestamp" in found["metadata"] or found["spec"].get("kubernetes"):
            return False
        spec = found["spec"]
        return bool(spec["writers"][0]["json"]["path"] == f"s3a://lake/{place}")

    def suspended(self, name: str) -> bool:
        found = self.cache.lakestream(("lake", name))
        return found is not None and found["spec"].get("suspend") is True

    # What people do.

    def edit(self, name: str, what: str) -> None:
        self._edit(name, what)
        self._holders = {place: one for place, one in self._holders.items() if not self._lets_go(one, place)}

    def _edit(self, name: str, what: str) -> None:
        known = self.cache.lakestream(("lake", name))
        if what == "crashes":
            for one in self.cache.versions():
                if one.kind is Kind.SparkApplication and one.name.startswith(f"{name}-"):
                    self.remove(one)
            return
        if what == "gone":
            if known is not None and not known["metadata"].get("finalizers"):
                self._collect(name)
            elif known is not None:
                gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "generation": 99}
                self.put({**known, "metadata": {**known["metadata"], **gone}})
            return
        made = known or lakestream(name)
        if known is None:
            made["metadata"] |= {"uid": f"uid of {name}", "generation": 0}
        spec = {**made["spec"], "checkpoint": f"s3a://lake/_checkpoints/{name}", **_edit(what)}
        if "deletionTimestamp" not in made["metadata"]:
            generation = made["metadata"]["generation"] + 1
            self.put({**made, "spec": spec, "metadata": {**made["metadata"], "generation": generation}})


def _edit(what: str) -> dict[str, Any]:
    """What an edit makes of a spec; one that is unreadable stays so where it is suspended or resumed."""
    if what in PLACES:
        return {"kubernetes": {}, "writers": [{"name": what, "json": {"path": f"s3a://lake/{what}"}}]}
    if what in MOVES:
        # Always the same writer.
        path = f"s3a://lake/{what.removeprefix('to ')}"
        return {"kubernetes": {}, "writers": [{"name": "json", "json": {"path": path}}]}
    if what == "invalid":
        return {"kubernetes": {"sparkConf": {"spark.speculation": "true"}}}
    return {"suspend": what == "suspended"}


@settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(EDITS)), max_size=12),
    pause=st.sampled_from([0.0, 0.5, 5.0]),
    latency=st.sampled_from([0.0, 0.1, 0.5]),
)
@example(edits=[*AWAY, ("a", "to one"), ("a", "resumed")], pause=5.0, latency=0.0)
@example(edits=[*AWAY, ("a", "resumed"), ("a", "to one"), ("b", "crashes")], pause=5.0, latency=0.1)
@example(edits=[*AWAY[:2], ("a", "invalid"), AWAY[-1], ("a", "resumed")], pause=5.0, latency=0.0)
@example(edits=[*AWAY, ("a", "to one"), ("a", "resumed"), ("b", "crashes")], pause=5.0, latency=0.0)
@example(edits=[*AWAY[:2], ("a", "invalid"), AWAY[-1], ("a", "resumed"), ("b", "crashes")], pause=5.0, latency=0.1)
@example(edits=[("a", "one"), ("a", "one"), ("b", "two"), ("a", "two")], pause=0.5, latency=0.1)
def test_each_place_has_one_writer_and_nobody_waits_for_nothing(
    play: Any, edits: list[tuple[str, str]], pause: float, latency: float
) -> None:
    api = Api(latency)

    async def living() -> None:
        now = datetime(2026, 1, 3, tzinfo=UTC)
        reconciler = Reconciler(api, api.cache, JOB, lambda: now, Metrics(CollectorRegistry()), chance=lambda: 0.0)  # type: ignore[arg-type]
        reconciler.ready.set()
        for name, what in edits:
            api.edit(name, what)
            await asyncio.sleep(pause)
        await asyncio.sleep(30)
        reconciler.cancel()

    play(living())
    assert max(api.most.values(), default=0) <= 1
    # In a hurry a driver may be gone before anybody has seen it.
    assert pause < 5 or not api.ousted
    for place in PLACES:
        wanting = [name for name in NAMES if api.wants(name, place)]
        # One that is suspended keeps its own.
        assert api.written(place) or not wanting or any(map(api.suspended, wanting))
