"""The SparkApplication of one writer (v1beta2 of the Kubeflow Spark Operator)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lakestream_api import Pod, memory_mebibytes
from lakestream_api.names import DOCUMENT_PATH, FINGERPRINT_ANNOTATION, SETTINGS_HASH_ANNOTATION
from lakestream_operator.model import Kind, Manifest, Stream
from lakestream_operator.render.document import Plan, hash_of
from lakestream_operator.render.objects import manifest_of
from lakestream_operator.render.pods import METRICS_PORT, driver_template, executor_template
from lakestream_operator.settings import JobSettings

SPARK_VERSION = "3.5.9"
MAIN_FILE = "local:///opt/lakestream/main.py"

_JVM_MIB = 384
_PYTHON_MIB = 256


def render_application(plan: Plan, stream: Stream, job: JobSettings, executors: int) -> Manifest:
    """The SparkApplication that runs a plan, beginning with so many executors.

    It is created once and never changed: the Spark Operator ends the driver on any change of a spec. What may change
    while it runs goes through the control ConfigMap; what may not needs a new one.
    """
    names, spec = plan.names, _spec(plan, job)
    annotations = {FINGERPRINT_ANNOTATION: plan.fingerprint, SETTINGS_HASH_ANNOTATION: hash_of(spec)}
    application = manifest_of(Kind.SparkApplication, names.application, names, stream, annotations=annotations)
    application["spec"] = spec | {"executor": {**spec["executor"], "instances": executors}}
    return application


@lru_cache(maxsize=8192)  # asked for with each decision, and the same until one of the two is another
def settings_hash(plan: Plan, job: JobSettings) -> str:
    """Hash of all that a SparkApplication of this plan would say now: with the plan unchanged, another one means that
    the operator's settings, or its release, would make other pods of it."""
    return hash_of(_spec(plan, job))


def _spec(plan: Plan, job: JobSettings) -> dict[str, Any]:
    """All of the application but how many executors it begins with."""
    names, spec = plan.names, plan.stream.spec
    pods = spec.kubernetes
    account = pods.service_account or names.service_account
    image_secrets = [*job.image_pull_secrets, *pods.image_pull_secrets]
    application: dict[str, Any] = {
        "type": "Python",
        "mode": "cluster",
        "sparkVersion": SPARK_VERSION,
        "image": pods.image or job.image,
        "imagePullPolicy": (pods.image_pull_policy or job.image_pull_policy).value,
        "mainApplicationFile": MAIN_FILE,
        "arguments": _arguments(plan.writer.name),
        # The operator alone decides on restarts: it knows why the driver ended, and whether another one may run.
        "restartPolicy": {"type": "Never"},
        "sparkConf": _spark_conf(plan, job),
        "driver": {
            "cores": spec.resources.driver.cores,
            "memory": spec.resources.driver.memory,
            **_sizes(pods.driver, spec.resources.driver.memory, pythons=1),
            "serviceAccount": account,
            "template": driver_template(plan, job),
        },
        "executor": {
            "cores": spec.resources.executor.cores,
            "memory": spec.resources.executor.memory,
            **_sizes(pods.executor, spec.resources.executor.memory, pythons=spec.resources.executor.cores),
            "serviceAccount": account,
            "template": executor_template(plan, job),
        },
    }
    if image_secrets:
        application["imagePullSecrets"] = image_secrets
    if job.labels:
        # Of a Service that the Spark Operator makes by default for a page, and without which it submits nothing.
        application["sparkUIOptions"] = {"serviceLabels": dict(job.labels)}
    return application


def executor_needs(plan: Plan) -> dict[str, str]:
    """What an executor's pod takes of a quota, by the names that quotas have."""
    spec = plan.stream.spec
    executor, pod = spec.resources.executor, spec.kubernetes.executor
    sizes = _sizes(pod, executor.memory, pythons=executor.cores)
    memory = f"{memory_mebibytes(executor.memory) + memory_mebibytes(sizes['memoryOverhead'])}Mi"
    cpu = str(sizes.get("coreRequest", executor.cores))
    needs = {"pods": "1", "cpu": cpu, "requests.cpu": cpu, "memory": memory, "requests.memory": memory}
    limits = {"limits.memory": memory} | ({"limits.cpu": sizes["coreLimit"]} if "coreLimit" in sizes else {})
    return {**needs, "count/pods": "1", **limits}


def _arguments(writer: str) -> list[str]:
    return ["ingest", "-f", DOCUMENT_PATH, "--writer", writer, "--cluster", "--metrics-port", str(METRICS_PORT)]


def _spark_conf(plan: Plan, job: JobSettings) -> dict[str, str]:
    """What only the submission can set; the driver sets all else before it starts Spark."""
    names = plan.names
    return {
        **{f"spark.kubernetes.driver.service.label.{key}": value for key, value in job.labels.items()},
        **job.spark_conf,
        **plan.stream.spec.kubernetes.spark_conf,
        "spark.kubernetes.driver.pod.name": names.driver_pod,
        "spark.kubernetes.executor.podNamePrefix": names.executor_prefix,
    }


def _sizes(pod: Pod, heap: str, pythons: int) -> dict[str, Any]:
    overhead = pod.memory_overhead or _overhead(heap, pythons)
    given = {"coreRequest": pod.core_request, "coreLimit": pod.core_limit, "memoryOverhead": overhead}
    return {name: value for name, value in given.items() if value is not None}


def _overhead(heap: str, pythons: int) -> str:
    """What a pod needs beside the heap.

    Spark's own rule, 40 % or 384 MiB, is too little for small heaps: of a heap of 1 GiB in use, a JVM has been seen to
    have up to 300 MiB outside of it, and each Python process 190 MiB.
    """
    return f"{max(memory_mebibytes(heap) * 2 // 5, _JVM_MIB + _PYTHON_MIB * pythons)}m"
