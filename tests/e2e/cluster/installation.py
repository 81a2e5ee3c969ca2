"""The charts, installed as a user installs them, and what of them a test needs to know."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.commands import Kubectl, helm, run, set_flags
from cluster.forward import forwarded
from cluster.volumes import claimable

ROOT = Path(__file__).parents[3]
CHARTS = ROOT / "charts"

SYSTEM = "e2e-system"
"""Namespace of the operators."""
LAKE = "e2e-lake"
"""Namespace of Kinesis, S3, load and the LakeStreams of most tests."""
OTHER = "e2e-other"
"""A second namespace with LakeStreams."""
NAMESPACES = (SYSTEM, LAKE, OTHER)

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for minutes: most of their CPU would go into compiling what they run."""


@dataclass(frozen=True)
class Images:
    """Where the cluster finds our images."""

    repository: str = os.environ.get("LAKESTREAM_E2E_REPOSITORY", "lakestream")
    tag: str = os.environ.get("LAKESTREAM_E2E_TAG", "dev")

    def reference(self, image: str) -> str:
        """As a pod names it."""
        return f"{self.repository}/{image}:{self.tag}"

    def flags(self, values: dict[str, str]) -> list[str]:
        """helm's flags for images, given as `values path → image`."""
        sets = {f"{path}.repository": f"{self.repository}/{image}" for path, image in values.items()}
        return [*set_flags({**sets, **{f"{path}.tag": self.tag for path in values}})]


IMAGES = Images()
USER = 1000660000
"""Of drivers and executors: one that no image knows, as OpenShift chooses them."""
MARK = "lake-of"
"""The annotation by which the chart's values say of a pod what it is."""


@dataclass(frozen=True)
class Release:
    """What of the operators a release is: a chart and its images."""

    charts: Path = CHARTS
    images: Images = IMAGES
    namespaces: tuple[str, ...] = ()
    """Those that it has rights in; none: all."""

    @classmethod
    def former(cls, sources: Path) -> Release:
        """An earlier one, which has rights where it needs them only; its images are on the cluster as `:former`."""
        return cls(sources / "charts", Images(tag="former"), (LAKE, OTHER))

    @property
    def successor(self) -> Release:
        """The present one, with the same rights."""
        return Release(namespaces=self.namespaces)

    def install(self) -> None:
        """Install it, or upgrade to it."""
        values: dict[str, str | int | float | bool] = {
            "crd.keep": False,
            "job.env[0].name": "JAVA_TOOL_OPTIONS",
            "job.env[0].value": QUICK_JAVA,
        }
        if self.charts == CHARTS:
            # Former ones had none.
            for pod in ("driver", "executor"):
                values[f"job.{pod}.template.metadata.annotations.{MARK}"] = pod
                values |= {
                    f"job.{pod}.template.spec.securityContext.{field}": USER for field in ("runAsUser", "fsGroup")
                }
        for number, namespace in enumerate(self.namespaces):
            values[f"operator.namespaces[{number}]"] = namespace
            values[f"sparkOperator.spark.jobNamespaces[{number}]"] = namespace
        chart = str(self.charts / "lakestream")
        helm(
            *("upgrade", "--install", "lakestream", chart, "-n", SYSTEM, "--wait", "--timeout=5m"),
            *self.images.flags({"operator.image": "operator", "job.image": "spark"}),
            *set_flags(values),
        )


@contextmanager
def installed(release: Release) -> Iterator[None]:
    """Everything but load and LakeStreams, while entered; afterwards nothing of it is left."""
    for namespace in NAMESPACES:
        Kubectl(namespace).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    keep = os.environ.get("LAKESTREAM_E2E_KEEP") == "1"
    try:
        with claimable(LAKE, IMAGES.reference("localkinesis"), keep=keep):
            try:
                install_local_aws()
                release.install()
                yield
            finally:
                if not keep:
                    _uninstall()
    finally:
        if not keep:
            run("kubectl", "delete", "namespace", *NAMESPACES, "--timeout=180s", seconds=200)


def install_local_aws() -> None:
    """Kinesis and S3, which keep what they have in claims, as with skaffold's profile `local`."""
    helm(
        *("upgrade", "--install", "local-aws", str(CHARTS / "local-aws"), "-n", LAKE, "--wait", "--timeout=5m"),
        *IMAGES.flags({"kinesis.image": "localkinesis"}),
        *set_flags({"kinesis.persistence.enabled": True, "s3.persistence.enabled": True}),
    )


def _uninstall() -> None:
    for namespace in (LAKE, OTHER):
        # While the operator is there: it ends the drivers.
        run("kubectl", "-n", namespace, "delete", "lakestreams", "--all", "--timeout=180s", seconds=200)
        for release in helm("list", "-q", "-n", namespace).split():
            helm("uninstall", release, "-n", namespace, "--wait")
    helm("uninstall", "lakestream", "-n", SYSTEM, "--wait")


@contextmanager
def s3_environment(namespace: str) -> Iterator[dict[str, str]]:
    """The variables with which a program here reaches the S3 server of local-aws in a namespace."""
    kubectl = Kubectl(namespace)
    secret, config = kubectl.get("secret", "local-aws"), kubectl.get("configmap", "local-aws")
    assert secret is not None
    assert config is not None
    with forwarded(namespace, "app.kubernetes.io/name=local-aws,app.kubernetes.io/component=s3", 7070) as port:
        yield {
            **{name: base64.b64decode(value).decode() for name, value in secret["data"].items()},
            "AWS_REGION": config["data"]["AWS_REGION"],
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
        }
