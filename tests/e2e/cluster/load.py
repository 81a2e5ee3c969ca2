"""Locust on the cluster: the loadgen chart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cluster.commands import Kubectl, helm, run, set_flags
from cluster.installation import CHARTS, IMAGES
from cluster.waiting import eventually

RELEASE = "load"


@contextmanager
def load(namespace: str, ledger: str, events: int, *, stream: str = "orders", seed: int = 1) -> Iterator[None]:
    """Events flow while entered; at the end all is settled, and the ledger shipped to `ledger`."""
    start_load(namespace, ledger, events, stream=stream, seed=seed)
    try:
        yield
    finally:
        stop_load(namespace)


def start_load(namespace: str, ledger: str, events: int, *, stream: str = "orders", seed: int = 1) -> None:
    """Install the chart, and wait until it writes."""
    helm(
        *("install", RELEASE, str(CHARTS / "loadgen"), "-n", namespace, "--wait", "--timeout=5m"),
        *IMAGES.flags({"image": "loadgen"}),
        *set_flags(
            {
                "load.stream": stream,
                "load.events": events,
                "load.users": 20,
                "load.seed": seed,
                "workers.replicas": 1,
                "ledger.s3": ledger,
                "envFrom[0].configMapRef.name": "local-aws",
                "envFrom[1].secretRef.name": "local-aws",
            }
        ),
    )


def stop_load(namespace: str) -> None:
    """Uninstall it: the workers settle what they have sent, and their ledgers are shipped before they go."""
    helm("uninstall", RELEASE, "-n", namespace, "--wait")
    kubectl = Kubectl(namespace)
    eventually(
        "the load's pods end",
        lambda: not kubectl.list("pods", f"app.kubernetes.io/instance={RELEASE}"),
        120,
        lambda: run("kubectl", "-n", namespace, "get", "pods"),
    )
