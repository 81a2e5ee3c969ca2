"""The shards of a stream follow its load, by orders to the first writer's driver."""

from datetime import timedelta
from typing import Any

import pytest

from lakestream_api import Control
from lakestream_api.names import CONTROL_KEY
from lakestream_operator.model import Kind, Reference
from lakestream_operator.render.objects import SHARDS_ANNOTATION
from lakestream_operator.testing import Cluster, KinesisStream, ModelApi, Mood, lakestream

MINUTE = timedelta(minutes=1)


def _cluster(kinesis: KinesisStream, *, least: int = 1, most: int = 64, **spec: Any) -> Cluster:
    document = lakestream(writers=("json", "hudi"))
    document["spec"]["source"]["kinesis"]["shards"] = {"min": least, "max": most}
    document["spec"] |= {"scaling": {"executors": 1}, **spec}
    return Cluster(document, kinesis=kinesis)


def _order(cluster: Cluster, writer: str = "json") -> int | None:
    found = cluster.objects[Reference(Kind.ConfigMap, "lake", f"orders-{writer}-control")]
    return Control.model_validate_json(found["data"][CONTROL_KEY]).shards


def _order_of_executors(cluster: Cluster) -> int | None:
    found = cluster.objects[Reference(Kind.ConfigMap, "lake", "orders-json-control")]
    return Control.model_validate_json(found["data"][CONTROL_KEY]).executors


def _told(cluster: Cluster, reason: str) -> list[str]:
    return [one.message for one in cluster.events if one.reason == reason]


def test_a_stream_below_its_minimum_grows_on_the_same_drivers() -> None:
    cluster = _cluster(KinesisStream(open_shards=2), least=4, most=8)
    cluster.advance(10 * MINUTE)
    assert cluster.kinesis.resharded == [4]
    assert (_order(cluster), _order(cluster, "hudi")) == (None, None)
    assert _told(cluster, "Resharding") == ["Stream orders: 2 shards are 5% full: 2 → 4"]
    assert cluster.status.shards == "4 shards are 2% full: that is right"
    assert [driver.writer for driver in cluster.started] == ["json", "hudi"]


def test_a_full_stream_grows_and_once_the_load_is_gone_shrinks() -> None:
    cluster = _cluster(KinesisStream(open_shards=4, records_per_second=3_800), least=2)
    cluster.advance(20 * MINUTE)
    assert cluster.kinesis.resharded == [6]
    cluster.kinesis.records_per_second = 100
    cluster.advance(55 * MINUTE, step=MINUTE / 3)
    assert cluster.kinesis.resharded == [6]
    cluster.advance(20 * MINUTE)
    assert cluster.kinesis.resharded == [6, 3]


def test_a_full_stream_that_may_not_grow_is_told_of() -> None:
    cluster = _cluster(KinesisStream(open_shards=4, records_per_second=3_950), least=1, most=4)
    cluster.advance(30 * MINUTE)
    assert cluster.kinesis.resharded == []
    said = "4 shards are 99% full: 6 are called for, and shards.max is 4"
    assert cluster.status.shards == said
    assert _told(cluster, "ShardsAtMaximum") == [f"{said}; who writes more is throttled"]


def _fail_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, of: str, mood: Mood) -> list[Any]:
    """Have the first write of an order of the first writer's driver fail."""
    apply, failed = cluster.api.apply, list[Any]()

    async def failing(manifest: Any) -> Any:
        told = Control.model_validate_json((manifest.get("data") or {}).get(CONTROL_KEY, "{}"))
        ours = manifest["metadata"]["name"] == "orders-json-control"
        value = getattr(told, of)
        if ours and not failed and value is not None and (of == "shards" or value > 1):
            failed.append(value)
            cluster.api.moods[Kind.ConfigMap] = mood
        try:
            return await apply(manifest)
        finally:
            cluster.api.moods.pop(Kind.ConfigMap, None)

    monkeypatch.setattr(ModelApi, "apply", lambda _, manifest: failing(manifest))
    return failed


@pytest.mark.parametrize("mood", [Mood.REFUSES, Mood.OVERLOADED, Mood.SWALLOWS])
def test_an_order_whose_write_fails_is_given_with_the_next_try(monkeypatch: pytest.MonkeyPatch, mood: Mood) -> None:
    cluster = _cluster(KinesisStream(open_shards=4, records_per_second=3_800), least=2)
    failed = _fail_once(cluster, monkeypatch, "shards", mood)
    cluster.advance(10 * MINUTE)
    assert (failed, cluster.kinesis.resharded) == ([6], [6])
    assert cluster.remembered.shards is not None
    assert len(cluster.remembered.shards.calls) == 1
    assert cluster.remembered.shards.calls[0] < cluster.started[0].started_at + 6 * MINUTE
    assert len(_told(cluster, "Resharding")) == (0 if mood is Mood.SWALLOWS else 1)


@pytest.mark.parametrize("mood", [Mood.REFUSES, Mood.OVERLOADED, Mood.SWALLOWS])
def test_a_step_of_the_executors_whose_write_fails_is_told_with_the_next_try(
    monkeypatch: pytest.MonkeyPatch, mood: Mood
) -> None:
    cluster = _cluster(KinesisStream(open_shards=64), least=64, scaling={})
    failed = _fail_once(cluster, monkeypatch, "executors", mood)
    cluster.advance(5 * MINUTE)
    cluster.edit(lambda spec: spec.update(scaling={"minExecutors": 3}))
    cluster.advance(MINUTE)
    assert failed == [3]
    assert _order_of_executors(cluster) == 3
    assert [one for one in _told(cluster, "Scaled") if one.startswith("Writer json")]


def test_without_the_field_nothing_is_asked_for_or_kept() -> None:
    cluster = Cluster(lakestream(), kinesis=KinesisStream(open_shards=4, records_per_second=3_900))
    cluster.advance(20 * MINUTE)
    assert (cluster.kinesis.resharded, _order(cluster), cluster.status.shards) == ([], None, "")
    assert not any(SHARDS_ANNOTATION in one["metadata"].get("annotations", {}) for one in cluster.find(Kind.ConfigMap))


def test_a_refusal_is_told_once_and_the_order_stands_for_an_hour() -> None:
    cluster = _cluster(KinesisStream(open_shards=2, refusal="ValidationException: ON_DEMAND"), least=4)
    cluster.advance(50 * MINUTE, step=MINUTE / 2)
    (message,) = _told(cluster, "ReshardingRefused")
    assert message == "Stream orders: 2 → 4 shards: Kinesis refuses: ValidationException: ON_DEMAND"
    assert cluster.status.shards == message.removeprefix("Stream orders: ")
    assert _order(cluster) == 4
    cluster.advance(20 * MINUTE)
    assert len(_told(cluster, "ReshardingRefused")) == 2
    cluster.kinesis.refusal = ""
    cluster.advance(5 * MINUTE)
    assert (cluster.kinesis.resharded, _order(cluster)) == ([4], None)
    assert len(cluster.running()) == 2


def test_what_was_refused_does_not_count_among_the_calls_of_a_day() -> None:
    cluster = _cluster(KinesisStream(open_shards=2, refusal="LimitExceededException"), least=4)
    cluster.advance(15 * 60 * MINUTE, step=5 * MINUTE)
    assert len(_told(cluster, "ReshardingRefused")) > 10
    cluster.kinesis.refusal = ""
    cluster.advance(5 * MINUTE)
    assert cluster.kinesis.resharded == [4]


def test_an_update_that_takes_hours_is_waited_for() -> None:
    cluster = _cluster(KinesisStream(open_shards=2, updating=True), least=4)
    cluster.advance(90 * MINUTE, step=MINUTE)
    assert (_order(cluster), len(_told(cluster, "Resharding"))) == (4, 1)
    cluster.kinesis.open_shards = 4
    cluster.advance(MINUTE)
    assert _order(cluster) == 4, "Kinesis is still at it"
    cluster.kinesis.updating = False
    cluster.advance(MINUTE)
    assert _order(cluster) is None


def test_a_restarted_operator_knows_the_calls_of_the_day_and_how_long_shards_were_too_many() -> None:
    cluster = _cluster(KinesisStream(open_shards=1), least=2)
    cluster.advance(10 * MINUTE)
    assert cluster.kinesis.resharded == [2]
    cluster.kinesis.open_shards = 16
    cluster.advance(40 * MINUTE, step=MINUTE / 3)
    cluster.restart_operator()
    cluster.advance(40 * MINUTE, step=MINUTE / 3)
    assert cluster.kinesis.resharded == [2, 8]


def test_an_order_survives_the_operator() -> None:
    cluster = _cluster(KinesisStream(open_shards=2, refusal="LimitExceededException"), least=4)
    cluster.advance(5 * MINUTE)
    cluster.restart_operator()
    cluster.kinesis.refusal = ""
    cluster.advance(MINUTE)
    assert (cluster.kinesis.resharded, len(_told(cluster, "Resharding"))) == ([4], 1)


def test_decisions_cost_no_writes() -> None:
    cluster = _cluster(KinesisStream())
    look = MINUTE / 12  # as often as an operator really does
    cluster.advance(10 * MINUTE, step=look)

    def versions() -> dict[str, str]:
        return {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"]
            for one in cluster.find(Kind.ConfigMap)
            if one["metadata"]["name"].endswith("-control")
        }

    seen = set()
    for _ in range(10):
        cluster.advance(MINUTE, step=look)
        seen.add(versions()["orders-json-control"])
    assert len(seen) <= 5, "the executors' memory is written every two minutes; that of shards along with it"


def test_a_dry_run_says_once_what_it_would_do() -> None:
    scaling = {"executors": 1, "dryRun": True}
    cluster = _cluster(KinesisStream(open_shards=2), least=4, scaling=scaling)
    cluster.advance(20 * MINUTE)
    assert (cluster.kinesis.resharded, _order(cluster)) == ([], None)
    assert cluster.status.shards == "dry run: 2 shards are 5% full: 2 → 4"
    assert [one for one in _told(cluster, "DryRun") if "shards" in one] == [f"Stream orders: {cluster.status.shards}"]
    cluster.edit(lambda spec: spec["scaling"].update(dryRun=False))
    cluster.advance(2 * MINUTE)
    assert cluster.kinesis.resharded == [4]


def test_nothing_changes_in_excluded_windows_or_while_suspended() -> None:
    windows = [{"cron": "0 0 * * *", "duration": "30m"}]
    cluster = _cluster(KinesisStream(open_shards=2), least=4, scaling={"executors": 1, "excludedWindows": windows})
    cluster.advance(20 * MINUTE)
    assert (cluster.kinesis.resharded, cluster.status.shards) == (
        [],
        "no change until 2026-01-01 00:30 UTC: excludedWindows",
    )
    cluster.edit(lambda spec: spec.update(suspend=True))
    cluster.advance(20 * MINUTE)
    assert (cluster.kinesis.resharded, _order(cluster), cluster.status.shards) == ([], None, "")
    cluster.edit(lambda spec: spec.update(suspend=False))
    cluster.advance(5 * MINUTE)
    assert cluster.kinesis.resharded == [4]


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec["source"]["kinesis"].pop("shards"),
        lambda spec: spec["scaling"].update(dryRun=True),
        lambda spec: spec.update(suspend=True),
        lambda spec: spec.update(writers=[]),
        lambda spec: spec["writers"].reverse(),
    ],
    ids=["no shards", "dry run", "suspended", "invalid", "another first writer"],
)
def test_an_order_is_withdrawn(change: Any) -> None:
    cluster = _cluster(KinesisStream(open_shards=2, refusal="AccessDeniedException"), least=4)
    cluster.advance(5 * MINUTE)
    assert _order(cluster) == 4
    cluster.edit(change)
    cluster.reconcile()
    assert _order(cluster) is None


def _bound(least: int, most: int) -> Any:
    return lambda spec: spec["source"]["kinesis"].update(shards={"min": least, "max": most})


@pytest.mark.parametrize(
    ("before", "order", "after", "resharded"),
    [((8, 64), 8, (1, 4), []), ((1, 2), 2, (4, 64), []), ((8, 64), 8, (5, 6), [5]), ((1, 2), 2, (3, 3), [3])],
    ids=["no more", "no fewer", "fewer more", "more fewer"],
)
def test_an_order_does_not_outlive_the_bounds_that_it_was_given_by(
    before: tuple[int, int], order: int, after: tuple[int, int], resharded: list[int]
) -> None:
    cluster = _cluster(KinesisStream(open_shards=4, refusal="LimitExceededException"), least=before[0], most=before[1])
    cluster.advance(5 * MINUTE)
    assert _order(cluster) == order
    cluster.edit(_bound(*after))
    cluster.reconcile()
    cluster.kinesis.refusal = ""
    cluster.advance(15 * MINUTE)
    assert (cluster.kinesis.resharded, _order(cluster)) == (resharded, None)


@pytest.mark.parametrize(("shards", "bounds", "steps"), [(2, (16, 64), [4, 8, 16]), (64, (1, 4), [32, 16, 8, 4])])
def test_a_stream_comes_into_its_bounds_by_steps(shards: int, bounds: tuple[int, int], steps: list[int]) -> None:
    cluster = _cluster(KinesisStream(open_shards=shards), least=bounds[0], most=bounds[1])
    cluster.advance(50 * MINUTE, step=MINUTE / 3)
    assert cluster.kinesis.resharded == steps


def test_what_kinesis_has_begun_is_waited_for_though_the_bounds_are_others_since() -> None:
    cluster = _cluster(KinesisStream(open_shards=4, updating=True), least=8)
    cluster.advance(5 * MINUTE)
    cluster.edit(_bound(1, 4))
    cluster.advance(5 * MINUTE)
    assert _order(cluster) == 8
