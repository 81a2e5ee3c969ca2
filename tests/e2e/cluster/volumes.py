"""Volumes for the claims of local-aws, where the cluster makes none by itself: folders of its one node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.commands import Kubectl, run

CLAIMS = ("localkinesis", "s3")
_FOLDER = "/var/lib/lakestream-e2e"


@contextmanager
def claimable(namespace: str, image: str, *, keep: bool) -> Iterator[None]:
    """Claims of a namespace can be had while entered; afterwards nothing is left of what was in them.

    Args:
        namespace: of the claims.
        image: one with a shell.
        keep: leave everything in place.
    """
    classes = json.loads(run("kubectl", "get", "storageclasses", "-o", "json"))["items"]
    if any(
        one["metadata"].get("annotations", {}).get("storageclass.kubernetes.io/is-default-class") == "true"
        for one in classes
    ):
        yield
        return
    kubectl = Kubectl(namespace)
    # What a killed run has left is not to be found by this one. A folder that the kubelet makes is root's alone.
    _on_the_node(kubectl, image, f"rm -rf /node/*; {' '.join(f'mkdir -m 777 /node/{one};' for one in CLAIMS)}")
    for one in CLAIMS:
        kubectl.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{namespace}-{one}"},
                "spec": {
                    "capacity": {"storage": "20Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": namespace, "name": one},
                    "hostPath": {"path": f"{_FOLDER}/{one}"},
                },
            }
        )
    try:
        yield
    finally:
        if not keep:
            for one in CLAIMS:
                kubectl.delete("persistentvolumeclaim", one)
                kubectl.delete("persistentvolume", f"{namespace}-{one}")
            _on_the_node(kubectl, image, "rm -rf /node/*")


def _on_the_node(kubectl: Kubectl, image: str, command: str) -> None:
    mount = {"name": "node", "mountPath": "/node"}
    container = {
        "name": "shell",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", command],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [mount],
    }
    folder = {"name": "node", "hostPath": {"path": _FOLDER, "type": "DirectoryOrCreate"}}
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": [folder]}
    with kubectl.applied({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "folders"}, "spec": pod}):
        kubectl.run("wait", "pod/folders", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=100s")
