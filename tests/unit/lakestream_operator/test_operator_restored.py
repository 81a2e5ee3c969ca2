"""A LakeStream that comes back from a backup with all that was made for it, as Velero restores objects: with labels,
annotations and finalizers, but without owners and status, and with uids of their own."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from lakestream_api import ConditionStatus, ConditionType, Phase
from lakestream_operator.claims import claimant_of, contested, taken
from lakestream_operator.decide import decide
from lakestream_operator.model import Kind, Observed
from lakestream_operator.observer import stream_of, trim
from lakestream_operator.testing import Cluster, lakestream
from lakestream_operator.testing.cluster import JOB

MINUTE = timedelta(minutes=1)
KEPT = ("name", "labels", "annotations", "finalizers")


def _restored(manifest: Any, namespace: str) -> Any:
    metadata = {name: value for name, value in manifest["metadata"].items() if name in KEPT}
    kept = {name: value for name, value in manifest.items() if name != "status"}
    return {**kept, "metadata": {**metadata, "namespace": namespace}}


def _cluster(original: Cluster, namespace: str, *, without: Iterable[Kind]) -> Cluster:
    cluster = Cluster(_restored(original.lakestream, namespace), now=original.now + 60 * MINUTE)
    for reference, one in original.objects.items():
        if reference.kind not in {*without, Kind.Pod}:
            cluster.api.admit(_restored(one, namespace))
    return cluster


@pytest.fixture(scope="module")
def original() -> Cluster:
    cluster = Cluster(lakestream())
    cluster.advance(5 * MINUTE)
    return cluster


@pytest.mark.parametrize("without", [(), (Kind.SparkApplication,)], ids=["all", "no application"])
def test_what_comes_back_is_taken_up_and_goes_with_it(original: Cluster, without: tuple[Kind, ...]) -> None:
    cluster = _cluster(original, "lake", without=without)
    cluster.advance(5 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert len(cluster.started) == 1
    assert cluster.lakestream is not None
    owners = [one["metadata"]["ownerReferences"] for one in cluster.find(Kind.ConfigMap)]
    assert [one["uid"] for some in owners for one in some] == 3 * [cluster.lakestream["metadata"]["uid"]]
    cluster.delete_lakestream()
    cluster.advance(10 * MINUTE)
    assert cluster.lakestream is None
    assert cluster.objects == {}


def test_a_copy_in_another_namespace_is_refused_and_starts_nothing(original: Cluster) -> None:
    copy = _cluster(original, "copy", without=(Kind.SparkApplication,))
    copy.reconcile()
    assert copy.lakestream is not None
    assert original.lakestream is not None
    first, second = (stream_of(trim(Kind.LakeStream, one)) for one in (original.lakestream, copy.lakestream))
    there, here = original.cache.writers(("lake", "orders")), copy.cache.writers(("copy", "orders"))
    me, other = claimant_of(second, here.values()), claimant_of(first, there.values())
    assert contested(other, [me]) == ""
    decision = decide(Observed(second, here, contested(me, [other]), taken(me, [other])), JOB, copy.now)
    assert not decision.starts
    assert decision.status is not None
    (valid,) = (one for one in decision.status.conditions if one.type is ConditionType.SPEC_VALID)
    assert valid.status is ConditionStatus.FALSE
    assert "of the LakeStream lake/orders" in valid.message
