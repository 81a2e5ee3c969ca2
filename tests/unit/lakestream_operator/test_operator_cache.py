"""What is known of the cluster, by what watches tell."""

from __future__ import annotations

from typing import Any

from lakestream_api.names import MANAGED_BY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.adapters.cache import Cache, StreamKey
from lakestream_operator.model import Kind, Reference

POD = Reference(Kind.Pod, "lake", "orders-hudi-driver")


def _pod(version: int, stream: str) -> dict[str, Any]:
    labels = {STREAM_LABEL: stream, WRITER_LABEL: "hudi", "app.kubernetes.io/managed-by": MANAGED_BY}
    metadata = {"name": POD.name, "namespace": POD.namespace, "uid": "pod", "resourceVersion": str(version)}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    made = {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}}
    return {**made, "metadata": {**metadata, "labels": labels}}


def test_an_object_that_is_given_to_another_lakestream_is_gone_from_the_first() -> None:
    woken: list[StreamKey] = []
    cache = Cache(wake=woken.append)
    cache.put(Kind.Pod, _pod(1, "orders"))
    cache.put(Kind.Pod, _pod(2, "debug"))
    assert woken == [("lake", "orders"), ("lake", "orders"), ("lake", "debug")]
    assert cache.writers(("lake", "orders")) == {}
    assert cache.writers(("lake", "debug")).keys() == {"hudi"}
    cache.put(Kind.Pod, _pod(1, "orders"))
    assert cache.writers(("lake", "orders")) == {}
    cache.remove(POD, 3)
    assert cache.versions() == {}
    assert cache.writers(("lake", "debug")) == {}
