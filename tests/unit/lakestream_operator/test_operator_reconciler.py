"""The reconciler, and the watchdog that tells whether it is well."""

import asyncio
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lakestream_api import LakeStreamStatus, Phase
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.adapters.web import serve_health, serve_metrics
from lakestream_operator.claims import Claimant, claimant_of
from lakestream_operator.errors import ForbiddenError
from lakestream_operator.metrics import Metrics, StreamMetrics
from lakestream_operator.model import Apply, Create, Emit, Finalize, Kind, Reference, Stream
from lakestream_operator.observer import FINALIZER, stream_of
from lakestream_operator.reconciler import Reconciler, _Loop
from lakestream_operator.testing import Cluster, lakestream
from lakestream_operator.testing.cluster import JOB
from lakestream_operator.watchdog import Watchdog

NEWEST = 1_000_000
"""A version that all have gone by."""


class Applier:
    """Takes down what is to be done."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.asked_of: list[str] = []
        """For whom something is to be done, done or not."""
        self.acts: list[tuple[str, Any]] = []
        self.statuses: list[tuple[str, LakeStreamStatus]] = []
        self.asked = 0
        """How often for quotas."""
        self.error: Exception | None = None
        self.slow: asyncio.Event | None = None
        self.answered: asyncio.Event | None = None
        """When writes of statuses are; none: at once."""

    async def act(self, stream: Stream, action: Any, now: Any) -> None:
        self.asked_of.append(stream.name)
        if self.slow is not None:
            await self.slow.wait()
        if self.error is not None:
            raise self.error
        self.acts.append((stream.name, action))
        if isinstance(action, Finalize):
            metadata = {**stream.manifest["metadata"], "resourceVersion": "2", "finalizers": [FINALIZER]}
            self.cache.put(Kind.LakeStream, {**stream.manifest, "metadata": metadata})

    async def quotas(self, stream: Stream) -> tuple[Any, ...]:
        self.asked += 1
        return ()

    async def write_status(self, stream: Stream, status: LakeStreamStatus) -> None:
        self.statuses.append((stream.name, status))
        if self.answered is not None:
            await self.answered.wait()
        written = {**stream.manifest, "status": status.model_dump(mode="json", by_alias=True)}
        version = int(written["metadata"]["resourceVersion"]) + 1
        metadata = {**written["metadata"], "resourceVersion": str(version)}
        self.cache.put(Kind.LakeStream, {**written, "metadata": metadata})


def _manifest(name: str = "orders", version: int = 1, **metadata: Any) -> dict[str, Any]:
    manifest = lakestream(name)
    manifest["metadata"] |= {"uid": f"uid of {name}", "generation": 1, "resourceVersion": str(version), **metadata}
    return manifest


def _reference(name: str) -> Reference:
    return Reference(Kind.LakeStream, "lake", name)


def _reconciler(clock: Any, applier: Applier) -> Reconciler:
    reconciler = Reconciler(applier, applier.cache, JOB, clock, Metrics(CollectorRegistry()), chance=lambda: 0.0)  # type: ignore[arg-type]
    reconciler.ready.set()
    return reconciler


async def _until(what: Any) -> None:
    while not what():
        await asyncio.sleep(0.005)


@pytest.fixture
def applier() -> Applier:
    return Applier()


def test_a_lakestream_is_looked_after_from_the_first_sight(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await _until(lambda: applier.statuses)
        await reconciler.close()

    play(looking())
    kinds = [type(action) for _, action in applier.acts]
    assert kinds[0] is Finalize
    assert {Apply, Create, Emit} <= set(kinds)
    assert kinds.index(Create) > kinds.index(Apply)


def test_a_rest_is_short_whatever_the_clock_said_when_it_began(clock: Any, applier: Applier, play: Any) -> None:
    async def resting() -> None:
        reconciler = _reconciler(clock, applier)
        manifest = _manifest()
        loop = _Loop(manifest, claimant_of(stream_of(manifest)), wake_at=clock.now + timedelta(days=1))
        await reconciler._rest(loop)

    play(resting())


def test_nothing_is_decided_before_the_cluster_is_known(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        reconciler.ready.clear()
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await asyncio.sleep(60)
        assert applier.acts == []
        reconciler.cache.remove(_reference("orders"), NEWEST)

    play(looking())


def test_a_bug_is_tried_again_later_and_is_nobody_elses(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        applier.error = KeyError("a bug")
        reconciler.cache.put(Kind.LakeStream, _manifest())
        key = ("lake", "orders")
        await _until(lambda: reconciler._loops[key].bug)
        assert reconciler._loops[key].wake_at == clock.now + timedelta(seconds=1)
        applier.error = None
        reconciler.cache.put(Kind.LakeStream, _manifest("other"))
        reconciler.wake(key)
        await _until(lambda: {name for name, _ in applier.statuses} == {"other"})
        bug = reconciler._loops[key].bug
        assert bug is not None
        assert bug.tries == 1, "whatever wakes it"
        reconciler.cache.put(Kind.LakeStream, _manifest(version=2, generation=2, finalizers=[FINALIZER]))
        await _until(lambda: {name for name, _ in applier.statuses} == {"orders", "other"})
        assert reconciler._loops[key].bug is None
        await reconciler.close()

    play(looking())


def test_a_bug_in_what_one_claims_keeps_nobody_else_waiting(
    clock: Any, applier: Applier, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claims(stream: Stream, *writers: Any) -> Claimant:
        if stream.name == "orders":
            raise KeyError("a bug")
        return claimant_of(stream, *writers)

    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        reconciler.ready.clear()
        reconciler.cache.put(Kind.LakeStream, _manifest())
        monkeypatch.setattr("lakestream_operator.reconciler.claimant_of", claims)
        reconciler.cache.put(Kind.LakeStream, _manifest(version=2, generation=2))
        reconciler.cache.put(Kind.LakeStream, _manifest("other"))
        reconciler.begin()
        await _until(lambda: {name for name, _ in applier.statuses} == {"other"})
        bug = reconciler._loops["lake", "orders"].bug
        assert bug is not None
        assert {name for name, _ in applier.acts} == {"other"}, "who cannot tell what it claims is not started"
        await reconciler.close()

    play(looking())


def test_a_status_is_not_written_for_nothing(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await _until(lambda: applier.statuses)
        seen = len(applier.statuses)
        for _ in range(2):
            reconciler.wake(("lake", "orders"))
            await _until(lambda: not reconciler._loops["lake", "orders"].woken.is_set())
            await asyncio.sleep(60)
        assert len(applier.statuses) == seen
        await reconciler.close()

    play(looking())


def _before_and_after() -> tuple[LakeStreamStatus, LakeStreamStatus]:
    """Two statuses with nothing but other figures."""
    cluster = Cluster(lakestream())
    cluster.advance(timedelta(minutes=2))
    return cluster.status, cluster.status.model_copy(update={"lag": timedelta(seconds=5)})


def test_figures_wait_while_the_api_server_is_behind(clock: Any, applier: Applier, play: Any) -> None:
    before, figures = _before_and_after()

    async def writing() -> None:
        reconciler = _reconciler(clock, applier)
        await reconciler.close()  # what is written is not looked after

        def write(name: str, status: LakeStreamStatus) -> asyncio.Task[None]:
            manifest = {**_manifest(name), "status": before.model_dump(mode="json", by_alias=True)}
            stream = stream_of(manifest)
            loop = _Loop(manifest, claimant_of(stream))
            return asyncio.create_task(reconciler._write(loop, stream, status, clock.now))

        applier.answered = asyncio.Event()
        crowd = [write(f"figures-{number}", figures) for number in range(100)]
        await asyncio.sleep(1)
        asked = len(applier.statuses)
        assert 0 < asked < 30
        crowd.append(write("news", before.model_copy(update={"phase": Phase.FAILED})))
        await asyncio.sleep(1)
        assert [name for name, _ in applier.statuses[asked:]] == ["news"]
        applier.answered.set()
        await asyncio.gather(*crowd)
        await write("later", figures)
        assert applier.statuses[-1][0] == "later"

    play(writing())


def test_a_clock_that_is_put_back_holds_no_figures_back(clock: Any, applier: Applier, play: Any) -> None:
    before, figures = _before_and_after()

    async def writing() -> None:
        reconciler = _reconciler(clock, applier)
        manifest = {**_manifest(), "status": before.model_dump(mode="json", by_alias=True)}
        stream = stream_of(manifest)
        loop = _Loop(manifest, claimant_of(stream), status_at=clock.now + timedelta(days=1))
        await reconciler._write(loop, stream, figures, clock.now)
        assert [status for _, status in applier.statuses] == [figures]
        await reconciler.close()

    play(writing())


def test_quotas_are_asked_for_again_after_a_clock_was_put_back(clock: Any, applier: Applier, play: Any) -> None:
    cluster = Cluster(lakestream())
    cluster.advance(timedelta(minutes=2))
    (driver,) = cluster.running()
    driver.room = 0
    cluster.advance(timedelta(minutes=1))
    writers = cluster.cache.writers(("lake", "orders"))

    async def asking() -> None:
        reconciler = _reconciler(clock, applier)
        stream = stream_of(_manifest())
        loop = _Loop(_manifest(), claimant_of(stream), quotas_at=clock.now + timedelta(days=1))
        for _ in range(2):
            await reconciler._look_at_quotas(stream, loop, writers, clock.now)
        assert (loop.quotas_at, applier.asked) == (clock.now, 1)
        await reconciler.close()

    play(asking())


async def _two_on_one_table(clock: Any, applier: Applier) -> Reconciler:
    """The second one is not started; its copy of the first one's spec has the table and the checkpoint of that."""
    reconciler = _reconciler(clock, applier)
    first, second = _manifest("first"), _manifest("second", creationTimestamp="2026-01-01T00:00:00Z")
    first["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    second["spec"] = first["spec"]
    reconciler.cache.put(Kind.LakeStream, second)
    reconciler.cache.put(Kind.LakeStream, first)
    await _until(lambda: {name for name, _ in applier.statuses} == {"first", "second"})
    assert _created(applier) == {"first"}
    return reconciler


def _created(applier: Applier) -> set[str]:
    return {name for name, action in applier.acts if isinstance(action, Create)}


def _edited(reconciler: Reconciler, name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> None:
    """What a person's edit brings."""
    known = reconciler.cache.lakestream(("lake", name))
    assert known is not None
    version = str(int(known["metadata"]["resourceVersion"]) + 1)
    changed = {**known["metadata"], "generation": 2, "resourceVersion": version, **metadata}
    reconciler.cache.put(Kind.LakeStream, {**known, "metadata": changed, "spec": {**known["spec"], **(spec or {})}})


def test_of_two_that_name_one_table_the_second_waits_until_the_first_lets_go(
    clock: Any, applier: Applier, play: Any
) -> None:
    async def looking() -> None:
        reconciler = await _two_on_one_table(clock, applier)
        reconciler.cache.remove(_reference("first"), NEWEST)
        await _until(lambda: "second" in _created(applier))
        await reconciler.close()

    play(looking())


def test_an_older_one_that_names_a_table_while_anothers_driver_starts_there_waits(
    clock: Any, applier: Applier, play: Any
) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        older, younger = _manifest("older"), _manifest("younger", finalizers=[FINALIZER])
        older["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
        younger["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        older["spec"] = {**older["spec"], "suspend": True}
        table = {"writers": younger["spec"]["writers"]}
        reconciler.cache.put(Kind.LakeStream, older)
        await _until(lambda: applier.statuses)
        applier.slow = asyncio.Event()
        reconciler.cache.put(Kind.LakeStream, younger)
        await _until(lambda: "younger" in applier.asked_of)
        applier.asked_of.clear()
        _edited(reconciler, "older", {**table, "suspend": False})
        await _until(lambda: reconciler._loops["lake", "older"].contested or "older" in applier.asked_of)
        applier.slow.set()
        await _until(lambda: {name for name, _ in applier.statuses} == {"older", "younger"})
        assert _created(applier) == {"younger"}
        await reconciler.close()

    play(looking())


def test_a_spec_that_claims_the_same_has_nobody_compare_anew(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        for name in ("first", "second"):
            reconciler.cache.put(Kind.LakeStream, _manifest(name))
        await _until(lambda: {name for name, _ in applier.statuses} == {"first", "second"})
        before = reconciler._claims
        _edited(reconciler, "first", {"scaling": {"executors": 3}})
        assert reconciler._claims == before
        _edited(reconciler, "first", {"checkpoint": "s3a://lake/another"}, generation=3)
        assert reconciler._claims == before + 1
        await reconciler.close()

    play(looking())


def test_one_that_waits_for_anothers_table_can_be_deleted_and_others_come_and_go(
    clock: Any, applier: Applier, play: Any
) -> None:
    async def looking() -> None:
        reconciler = await _two_on_one_table(clock, applier)
        _edited(reconciler, "second", deletionTimestamp="2026-01-03T00:00:00Z")
        await _until(lambda: ("second", Finalize(present=False)) in applier.acts)
        third = _manifest("third")
        third["spec"]["writers"] = [{"name": "json", "json": {"path": "s3a://lake/third"}}]
        third["spec"]["checkpoint"] = "s3a://lake/_checkpoints/third"
        reconciler.cache.put(Kind.LakeStream, third)
        await _until(lambda: "third" in _created(applier))
        await reconciler.close()

    play(looking())


def test_one_that_waits_for_anothers_table_is_started_on_the_one_that_it_is_given(
    clock: Any, applier: Applier, play: Any
) -> None:
    async def looking() -> None:
        reconciler = await _two_on_one_table(clock, applier)
        own = {"writers": [{"name": "own", "json": {"path": "s3a://lake/second"}}]}
        _edited(reconciler, "second", own)
        await _until(lambda: "second" in _created(applier))
        await reconciler.close()

    play(looking())
    applied = [action.manifest for name, action in applier.acts if name == "second" and isinstance(action, Apply)]
    documents = [one["data"]["lakestream.yaml"] for one in applied if "lakestream.yaml" in one.get("data", {})]
    assert documents
    assert all("s3a://lake/second" in one for one in documents)


def test_a_spec_that_cannot_be_read_gives_no_table_away_that_its_driver_writes(
    clock: Any, applier: Applier, play: Any
) -> None:
    async def looking() -> None:
        reconciler = await _two_on_one_table(clock, applier)
        given = next(
            action.manifest
            for name, action in applier.acts
            if name == "first" and isinstance(action, Apply) and "lakestream.yaml" in action.manifest.get("data", {})
        )
        (created,) = (action.manifest for _, action in applier.acts if isinstance(action, Create))
        stored = {"uid": "uid", "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
        for made in (given, created):
            reconciler.cache.put(Kind[made["kind"]], {**made, "metadata": {**made["metadata"], **stored}})
        told = len(applier.statuses)
        _edited(reconciler, "first", {"kubernetes": {"sparkConf": {"spark.speculation": "true"}}})
        await _until(lambda: "first" in {name for name, _ in applier.statuses[told:]})
        await asyncio.sleep(1)
        assert _created(applier) == {"first"}
        # A driver that ends is started again; of one that is suspended, and whose driver is gone, nobody writes there.
        reconciler.cache.remove(Reference.of(created), NEWEST)
        await asyncio.sleep(1)
        assert _created(applier) == {"first"}
        _edited(reconciler, "first", {"suspend": True}, generation=3)
        await _until(lambda: "second" in _created(applier))
        await reconciler.close()

    play(looking())


def test_an_older_sight_of_a_lakestream_is_passed_over(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        reconciler.ready.clear()
        reconciler.cache.put(Kind.LakeStream, _manifest(version=5))
        reconciler.cache.put(Kind.LakeStream, _manifest(version=4))
        assert reconciler.cache.versions() == {_reference("orders"): 5}
        reconciler.cache.put(Kind.LakeStream, _manifest(version=7, uid="another"))
        # Watches tell of two objects of one name in any order.
        reconciler.cache.remove(_reference("orders"), 6)
        reconciler.cache.put(Kind.LakeStream, _manifest(version=5))
        assert reconciler.cache.versions() == {_reference("orders"): 7}
        assert reconciler._loops["lake", "orders"].manifest["metadata"]["uid"] == "another"
        reconciler.cache.remove(_reference("orders"), NEWEST)
        assert reconciler.cache.versions() == {}

    play(looking())


def test_a_loop_that_is_cancelled_while_it_is_woken_ends(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        reconciler = _reconciler(clock, applier)
        reconciler.cache.put(Kind.LakeStream, _manifest())
        loop = reconciler._loops["lake", "orders"]
        await _until(lambda: applier.statuses and not loop.woken.is_set() and loop.busy_since is None)
        await asyncio.sleep(5)
        assert loop.task is not None
        reconciler.wake(("lake", "orders"))
        await asyncio.sleep(0)
        loop.task.cancel()
        await asyncio.wait([loop.task], timeout=60)
        assert loop.task.cancelled()

    play(looking())


def test_the_end_waits_for_cycles_in_hand(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        applier.slow = asyncio.Event()
        reconciler = _reconciler(clock, applier)
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await _until(lambda: reconciler._loops["lake", "orders"].busy_since)
        closing = asyncio.create_task(reconciler.close())
        await asyncio.sleep(5)
        assert not closing.done()
        applier.slow.set()
        await closing
        assert applier.acts

    play(looking())


def _watchdog(clock: Any, reconciler: Reconciler, client: Any) -> Watchdog:
    return Watchdog(client, reconciler, (), clock, clock.now)


def test_a_hung_cycle_is_unhealthy(clock: Any, applier: Applier, play: Any) -> None:
    async def looking() -> None:
        applier.slow = asyncio.Event()
        reconciler = _reconciler(clock, applier)
        watchdog = _watchdog(clock, reconciler, None)
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await _until(lambda: reconciler._loops["lake", "orders"].busy_since)
        assert watchdog.problems() == []
        watchdog.done_at = clock.now + timedelta(minutes=6)
        clock.move(6 * 60)
        assert watchdog.problems() == ["a cycle has taken 0:06:00"]
        reconciler.cache.remove(_reference("orders"), NEWEST)

    play(looking())


def test_metrics_are_those_of_now_also_where_the_status_is_refused(clock: Any, applier: Applier, run: Any) -> None:
    async def refused(stream: Stream, status: LakeStreamStatus) -> None:
        applier.statuses.append((stream.name, status))
        raise ForbiddenError(403, "a policy forbids it")

    async def looking() -> None:
        applier.write_status = refused  # type: ignore[method-assign]
        reconciler = _reconciler(clock, applier)
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await _until(lambda: applier.statuses)
        ((key, status),) = reconciler.statuses()
        assert (key, status) == (("lake", "orders"), applier.statuses[-1][1])
        await reconciler.close()

    run(looking())


def test_health_and_metrics_are_served(clock: Any, applier: Applier, run: Any) -> None:
    problems: list[str] = []

    async def serving() -> None:
        reconciler = _reconciler(clock, applier)
        registry = CollectorRegistry()
        registry.register(StreamMetrics(reconciler.statuses))
        reconciler.cache.put(Kind.LakeStream, _manifest())
        await _until(lambda: applier.statuses)
        async with (
            serve_health(0, lambda: problems, list) as health,
            serve_metrics(0, registry) as metrics,
            aiohttp.ClientSession() as session,
        ):
            answer = await session.get(f"http://127.0.0.1:{health}/healthz")
            assert (answer.status, await answer.text()) == (200, "ok")
            problems.append("the watch is dead")
            answer = await session.get(f"http://127.0.0.1:{health}/healthz")
            assert (answer.status, await answer.text()) == (503, "the watch is dead")
            answer = await session.get(f"http://127.0.0.1:{health}/readyz")
            assert answer.status == 200
            answer = await session.get(f"http://127.0.0.1:{metrics}/metrics")
            text = await answer.text()
        assert 'lakestream_phase{namespace="lake",phase="Starting",stream="orders"} 1.0' in text
        await reconciler.close()
        reconciler.cache.remove(_reference("orders"), NEWEST)
        assert b"orders" not in generate_latest(registry), "one that is gone leaves no series"

    run(serving())
