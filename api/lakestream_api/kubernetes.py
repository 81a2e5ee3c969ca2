"""How the pods of a LakeStream look on Kubernetes. None of it is used on a laptop."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from lakestream_api.base import ApiModel, problem_at
from lakestream_api.cel import rule, rules
from lakestream_api.fields import (
    EntryKey,
    EnvName,
    EnvPrefix,
    Image,
    KubernetesName,
    TaintKey,
    TaintValue,
    valid_annotations,
    valid_labels,
)
from lakestream_api.names import OWN_VARIABLES
from lakestream_api.quantities import Cpu, Memory, cpu_millis
from lakestream_api.templates import DRIVER_CONTAINER, EXECUTOR_CONTAINER, conf_problems, template_problems


class ImagePullPolicy(StrEnum):
    """When an image is fetched."""

    IF_NOT_PRESENT = "IfNotPresent"
    ALWAYS = "Always"
    NEVER = "Never"


class KeyReference(ApiModel):
    """One entry of a Secret or ConfigMap in the LakeStream's namespace."""

    name: KubernetesName
    """Name of the object."""

    key: EntryKey = Field(min_length=1, max_length=253)
    """The entry."""

    optional: bool = False
    """Leave the variable out when there is no such object or entry."""


class ObjectReference(ApiModel):
    """A Secret or ConfigMap in the LakeStream's namespace."""

    name: KubernetesName
    """Name of the object."""

    optional: bool = False
    """Go on when there is no such object."""


class EnvSource(ApiModel):
    """Where a variable's value comes from: exactly one of the two."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.secretKeyRef) != has(self.configMapKeyRef)",
                "needs exactly one of secretKeyRef and configMapKeyRef",
            )
        )
    )

    secret_key_ref: KeyReference | None = None
    """An entry of a Secret."""

    config_map_key_ref: KeyReference | None = None
    """An entry of a ConfigMap."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.secret_key_ref is None) == (self.config_map_key_ref is None):
            raise ValueError("needs exactly one of secretKeyRef and configMapKeyRef")
        return self


_OWN_VARIABLE = "is LakeStream's or Spark's own; choose another name"


class EnvVar(ApiModel):
    """An environment variable of driver and executors."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("has(self.value) != has(self.valueFrom)", "needs exactly one of value and valueFrom"),
            rule(f"!self.name.matches('^({OWN_VARIABLES})$')", _OWN_VARIABLE, ".name"),
        )
    )

    name: EnvName
    """Name of the variable."""

    value: str | None = Field(default=None, max_length=8192)
    """Its value. For what is secret, use `valueFrom`."""

    value_from: EnvSource | None = None
    """Where its value comes from."""

    @model_validator(mode="after")
    def _has_one_value(self) -> Self:
        if (self.value is None) == (self.value_from is None):
            raise problem_at("value", "needs exactly one of value and valueFrom")
        if re.fullmatch(OWN_VARIABLES, self.name):
            raise problem_at("name", f"{self.name!r} {_OWN_VARIABLE}")
        return self


def env_problems(env: Sequence[EnvVar]) -> Iterator[tuple[str, str]]:
    """Names that a list of variables has already, each by its path, with what to do."""
    for index, variable in enumerate(env):
        if variable.name in {other.name for other in env[:index]}:
            yield f"env[{index}].name", f"{variable.name!r} is given twice; give it once"


class EnvFrom(ApiModel):
    """A Secret or ConfigMap whose entries all become variables: exactly one of the two."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("has(self.secretRef) != has(self.configMapRef)", "needs exactly one of secretRef and configMapRef")
        )
    )

    prefix: EnvPrefix = Field(default="", max_length=253)
    """Put before each entry's name."""

    secret_ref: ObjectReference | None = None
    """A Secret."""

    config_map_ref: ObjectReference | None = None
    """A ConfigMap."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.secret_ref is None) == (self.config_map_ref is None):
            raise ValueError("needs exactly one of secretRef and configMapRef")
        return self


class TolerationOperator(StrEnum):
    """How a toleration's key is compared."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class TaintEffect(StrEnum):
    """What a taint does."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


_ANY_VALUE = "operator Exists takes any value; remove it, or compare by Equal"
_ANY_KEY = "without a key all taints are meant; say so by operator Exists"
_FOR_SECONDS = "pods stay for some seconds after NoExecute alone; give that effect, or remove it"


class Toleration(ApiModel):
    """A taint of nodes that the pods put up with, as in any pod."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self.operator != 'Exists' || !has(self.value) || self.value == ''", _ANY_VALUE, ".value"),
            rule("(has(self.key) && self.key != '') || self.operator == 'Exists'", _ANY_KEY, ".operator"),
            rule(
                "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
                _FOR_SECONDS,
                ".tolerationSeconds",
            ),
        )
    )

    key: TaintKey | None = Field(default=None, max_length=316)
    """Key of the taint; without it, and with `Exists`, all are meant."""

    operator: TolerationOperator = TolerationOperator.EQUAL
    """`Equal` compares the value, `Exists` takes any."""

    value: TaintValue | None = Field(default=None, max_length=63)
    """Value of the taint."""

    effect: TaintEffect | None = None
    """Effect of the taint; without it, all are meant."""

    toleration_seconds: int | None = Field(default=None, ge=0)
    """Seconds that a pod stays after a `NoExecute` taint appears; without it, for good."""

    @model_validator(mode="after")
    def _is_one_that_pods_may_have(self) -> Self:
        exists = self.operator is TolerationOperator.EXISTS
        if exists and self.value:
            raise problem_at("value", _ANY_VALUE)
        if not exists and not self.key:
            raise problem_at("operator", _ANY_KEY)
        if self.toleration_seconds is not None and self.effect is not TaintEffect.NO_EXECUTE:
            raise problem_at("tolerationSeconds", _FOR_SECONDS)
        return self


PodTemplate = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
"""Any fields of a PodTemplateSpec; the API server says of the pod what is wrong with their values, if these are of the
kind that they should be."""


class Pod(ApiModel):
    """What the scheduler is told of a pod besides `spec.resources`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.coreRequest) || !has(self.coreLimit)"
                " || quantity(self.coreRequest).compareTo(quantity(self.coreLimit)) <= 0",
                "is less than coreRequest; give at least as much",
                ".coreLimit",
            )
        )
    )

    core_request: Cpu | None = None
    """CPU that is reserved, as in `"500m"` or `"2"`; without it, `spec.resources` cores."""

    core_limit: Cpu | None = None
    """CPU that is never exceeded; without it, none."""

    memory_overhead: Memory | None = None
    """Memory on top of the JVM's heap: for Python, and for what the JVM keeps outside of its heap.
    Without it, 40 % of the heap, at least `384m` and `256m` more for each Python process: one in a
    driver, one per core in an executor."""

    template: PodTemplate | None = None
    """A PodTemplateSpec, merged into the pod as `kubectl patch` would: lists by name, or as a whole where
    they have none; null takes a field away, applied by `kubectl apply --server-side` (without that, kubectl
    leaves nulls out). What LakeStream and Spark set themselves is refused by name. Spark's container is
    `spark-kubernetes-driver`, or `spark-kubernetes-executor`."""

    @model_validator(mode="after")
    def _limit_allows_the_request(self) -> Self:
        request, limit = self.core_request, self.core_limit
        if request and limit and cpu_millis(limit) < cpu_millis(request):
            raise problem_at("coreLimit", f"{limit!r} is less than coreRequest {request!r}; give at least as much")
        return self


def _others_labels(labels: dict[str, str]) -> dict[str, str]:
    for key in labels:
        if key.startswith(("lakestream.dev/", "app.kubernetes.io/", "spark-")) or ".spark" in key.partition("/")[0]:
            raise ValueError(f"{key!r} is set by LakeStream or Spark; choose another key")
    return labels


OthersLabels = Annotated[dict[str, str], AfterValidator(valid_labels), AfterValidator(_others_labels)]
"""Labels, but none that LakeStream or Spark sets."""


class Kubernetes(ApiModel):
    """How the pods of all writers look on Kubernetes. Not used on a laptop."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.serviceAccount) || !has(self.serviceAccountAnnotations)"
                " || self.serviceAccountAnnotations.size() == 0",
                "has no effect on an account that exists; annotate that one, or remove serviceAccount",
                ".serviceAccountAnnotations",
            )
        )
    )

    image: Image | None = Field(default=None, min_length=1, max_length=512)
    """Image of driver and executors; without it, the one that the operator was installed with."""

    image_pull_policy: ImagePullPolicy | None = None
    """When the image is fetched; without it, as the operator was installed."""

    image_pull_secrets: Annotated[tuple[KubernetesName, ...], Field(max_length=8)] = ()
    """Names of Secrets that the image may be fetched with."""

    service_account: KubernetesName | None = None
    """Service account of the drivers and executors, which must exist; it is bound to what a driver needs.
    Without it, each writer gets one of its own."""

    service_account_annotations: Annotated[dict[str, str], Field(max_length=16), AfterValidator(valid_annotations)] = (
        Field(default_factory=dict)
    )
    """Annotations of the service accounts that are made, as in `eks.amazonaws.com/role-arn`."""

    env: tuple[EnvVar, ...] = Field(
        default=(),
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    """Environment variables of driver and executors."""

    env_from: Annotated[tuple[EnvFrom, ...], Field(max_length=16)] = ()
    """Secrets and ConfigMaps whose entries all become variables."""

    node_selector: Annotated[dict[str, str], Field(max_length=16), AfterValidator(valid_labels)] = Field(
        default_factory=dict
    )
    """Labels of the nodes that the pods may run on."""

    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=16)] = ()
    """Taints of nodes that the pods put up with."""

    pod_labels: OthersLabels = Field(
        default_factory=dict,
        max_length=32,
        json_schema_extra=rules(
            rule(
                r"self.all(key, !key.matches(r'^(lakestream\.dev/|app\.kubernetes\.io/|spark-|[^/]*\.spark)'))",
                "labels of LakeStream, of Spark and app.kubernetes.io/ are set already; choose other keys",
            )
        ),
    )
    """More labels of the pods."""

    pod_annotations: Annotated[dict[str, str], Field(max_length=32), AfterValidator(valid_annotations)] = Field(
        default_factory=dict
    )
    """More annotations of the pods."""

    priority_class_name: KubernetesName | None = None
    """Priority class of the pods."""

    spark_conf: Annotated[dict[str, str], Field(max_length=128)] = Field(default_factory=dict)
    """More of Spark's configuration, before that of the operator's settings. What LakeStream sets itself is
    refused by name."""

    driver: Pod = Pod()
    """The driver's pod."""

    executor: Pod = Pod()
    """Each executor's pod."""

    @model_validator(mode="after")
    def _what_is_ours_is_left_alone(self) -> Self:
        for key, problem in conf_problems(self.spark_conf):
            raise problem_at(f"sparkConf[{key}]", problem)
        pods = (("driver", self.driver, DRIVER_CONTAINER), ("executor", self.executor, EXECUTOR_CONTAINER))
        for name, pod, container in pods:
            for path, problem in template_problems(pod.template or {}, container):
                raise problem_at(f"{name}.template.{path}", problem)
        return self

    @model_validator(mode="after")
    def _annotations_have_an_account(self) -> Self:
        if self.service_account is not None and self.service_account_annotations:
            raise problem_at(
                "serviceAccountAnnotations",
                "has no effect on an account that exists; annotate that one, or remove serviceAccount",
            )
        for path, problem in env_problems(self.env):
            raise problem_at(path, problem)
        return self
