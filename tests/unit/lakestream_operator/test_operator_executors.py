"""Executors of what runs, also where that is not what the spec asks for."""

from datetime import timedelta
from typing import Any

import pytest

from lakestream_api import Control, Scaling, WriterNames
from lakestream_api.names import CONTROL_KEY
from lakestream_operator import decide
from lakestream_operator.autoscaler import ScaleDecision
from lakestream_operator.executors import scale
from lakestream_operator.model import Kind, Reference
from lakestream_operator.render import Plan
from lakestream_operator.testing import Behaviour, Cluster, lakestream

MINUTE = timedelta(minutes=1)
INVALID = {"transform": "DELETE FROM events"}


def _ordered(cluster: Cluster) -> int | None:
    found = cluster.objects[Reference(Kind.ConfigMap, "lake", WriterNames("orders", "json").control)]
    return Control.model_validate_json(found["data"][CONTROL_KEY]).executors


def _busy(**spec: Any) -> Cluster:
    """A driver whose records keep ten cores busy."""
    document = lakestream()
    document["spec"] |= {"scaling": {"maxExecutors": 20}, "resources": {"executor": {"cores": 2}}, **spec}
    cluster = Cluster(document)
    cluster.kinesis.open_shards, cluster.kinesis.records_per_second = 64, 40_000
    cluster.kinesis.core_seconds = 100.0
    return cluster


def test_a_writer_that_was_rolled_back_is_scaled_by_the_cores_that_it_has() -> None:
    cluster = _busy(rollback=True)
    cluster.advance(2 * MINUTE)
    (good,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.WELL if one == good.fingerprint else Behaviour.REFUSES
    cluster.edit(lambda spec: spec.update(resources={"executor": {"cores": 16}}, schema="order_id nonsense"))
    cluster.advance(20 * MINUTE)
    assert [one.fingerprint for one in cluster.running()] == [good.fingerprint]
    assert cluster.status.executors.now >= 5, cluster.status.writers[0].scaling


def test_what_goes_on_with_an_invalid_spec_follows_its_load() -> None:
    cluster = _busy()
    cluster.advance(MINUTE)
    cluster.edit(lambda spec: spec.update(INVALID))
    cluster.advance(20 * MINUTE)
    assert cluster.status.executors.now >= 5, cluster.status.writers[0].scaling
    assert cluster.status.executors.now == cluster.status.executors.target


def test_bounds_of_an_invalid_spec_are_kept_and_those_that_are_wrong_change_nothing() -> None:
    cluster = Cluster(lakestream(writers=("json", "hudi")))
    cluster.advance(2 * MINUTE)
    cluster.edit(lambda spec: spec.update(INVALID | {"scaling": {"executors": 4}}))
    cluster.advance(MINUTE)
    assert _ordered(cluster) == 4
    cluster.edit(lambda spec: spec.update(scaling={"executors": 99}))
    cluster.advance(MINUTE)
    assert _ordered(cluster) == 4
    assert [one.executors.target for one in cluster.status.writers] == [4, 4]
    assert cluster.status.executors.now == 8


@pytest.mark.parametrize("change", [{"suspend": True}, INVALID | {"suspend": True}], ids=str)
def test_what_is_suspended_is_to_have_no_executors(change: dict[str, Any]) -> None:
    cluster = Cluster(lakestream())
    cluster.advance(2 * MINUTE)
    cluster.edit(lambda spec: spec.update(change))
    cluster.reconcile()
    assert cluster.status.executors.target == 0


def test_a_writer_that_is_pushed_to_shares_its_shards_with_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, int] = {}

    def scaled(spec: Scaling, plan: Plan, consumers: int, *rest: Any) -> ScaleDecision:
        asked[plan.writer.name] = consumers
        return scale(spec, plan, consumers, *rest)

    monkeypatch.setattr(decide, "scale", scaled)
    document = lakestream(writers=("a", "b", "c"))
    Cluster(document).advance(MINUTE)
    assert asked == {"a": 3, "b": 3, "c": 3}
    arn = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders/consumer"
    document["spec"]["writers"][1]["consumerArn"] = f"{arn}/b:1764460800"
    Cluster(document).advance(MINUTE)
    assert asked == {"a": 2, "b": 0, "c": 2}
