"""Nodes, and what is free on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.commands import Kubectl, Object, run
from cluster.installation import IMAGES
from cluster.waiting import eventually
from lakestream_api.quantities import parse_size

_LEFT = 64 << 20
"""Bytes that stay free: less than any pod of ours asks for."""
_OUT = 120.0
"""Seconds that a pod may take to end."""


@contextmanager
def full(namespace: str) -> Iterator[None]:
    """While entered, no node has memory for another pod: pods of `namespace` that do nothing have asked for it."""
    kubectl = Kubectl(namespace)
    names = []
    eventually("pods that are on their way out are gone", lambda: not _ending(), _OUT, _ending)
    try:
        for number, (node, free) in enumerate(_free_memory().items()):
            if free > _LEFT:
                names.append(f"filler-{number}")
                kubectl.apply(_filler(names[-1], node, free - _LEFT))
        yield
    finally:
        for name in names:
            kubectl.delete("pod", name, "--grace-period=0", "--force")


def _pods() -> list[Object]:
    pods: list[Object] = json.loads(run("kubectl", "get", "pods", "-A", "-o", "json"))["items"]
    return pods


def _ending() -> list[str]:
    """Pods that still have their memory, and give it back in a moment."""
    return [pod["metadata"]["name"] for pod in _pods() if "deletionTimestamp" in pod["metadata"]]


def _free_memory() -> dict[str, int]:
    """Bytes of each node that no pod has asked for."""
    nodes = json.loads(run("kubectl", "get", "nodes", "-o", "json"))["items"]
    free = {node["metadata"]["name"]: parse_size(node["status"]["allocatable"]["memory"]) for node in nodes}
    for pod in _pods():
        node = pod["spec"].get("nodeName")
        if node in free and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            free[node] -= sum(_memory(container) for container in pod["spec"]["containers"])
    return free


def _memory(container: Object) -> int:
    return parse_size(container.get("resources", {}).get("requests", {}).get("memory", "0"))


def _filler(name: str, node: str, memory: int) -> Object:
    memory_only = {"memory": str(memory)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "filler",
                    "image": IMAGES.reference("operator"),
                    "command": ["sleep", "infinity"],
                    "resources": {"requests": memory_only, "limits": memory_only},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
