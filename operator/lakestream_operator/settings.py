"""The operator's settings file (YAML): what the chart renders and `run --config` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from lakestream_api import EnvFrom, EnvVar, ImagePullPolicy
from lakestream_api.base import ApiModel, problem_at
from lakestream_api.kubernetes import OthersLabels, PodTemplate, env_problems
from lakestream_api.templates import DRIVER_CONTAINER, EXECUTOR_CONTAINER, conf_problems, template_problems
from lakestream_operator.errors import SettingsError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class PodSettings(ApiModel):
    """What of one kind of pod is changed."""

    template: PodTemplate = Field(default_factory=dict)
    """A PodTemplateSpec, merged into all pods of the kind before what a LakeStream gives for its own. What is refused
    there is refused here; so are labels and the environment of Spark's container, for which there are other fields."""


class JobSettings(ApiModel):
    """How drivers and executors are made, unless a LakeStream says otherwise. Running drivers keep what they have:
    a change is taken up at their next start."""

    image: str = Field(min_length=1)
    """Image of driver and executors."""

    image_pull_policy: ImagePullPolicy = ImagePullPolicy.IF_NOT_PRESENT
    """When it is fetched."""

    image_pull_secrets: tuple[str, ...] = ()
    """Secrets in each LakeStream's namespace that it may be fetched with."""

    env: tuple[EnvVar, ...] = ()
    """Environment variables of all drivers and executors; a LakeStream's own win."""

    env_from: tuple[EnvFrom, ...] = ()
    """Secrets and ConfigMaps of each LakeStream's namespace whose entries all become variables."""

    labels: OthersLabels = Field(default_factory=dict)
    """Labels of all that is made for LakeStreams; of pods, a LakeStream's own win."""

    spark_conf: dict[str, str] = Field(default_factory=dict)
    """More of Spark's configuration. What LakeStream sets itself is refused by name, as in a LakeStream."""

    driver: PodSettings = PodSettings()
    """All drivers' pods."""

    executor: PodSettings = PodSettings()
    """All executors' pods."""

    cluster_role: str = Field(min_length=1)
    """ClusterRole that each driver's service account is bound to in its namespace."""

    termination_grace_period_seconds: int = Field(default=120, ge=0)
    """Seconds that a driver has to end the batch in hand when its pod is deleted, as by the drain of a node.
    A batch that is cut off is written again, exactly once, by the next driver."""

    def __hash__(self) -> int:
        return hash(self.image)

    @model_validator(mode="after")
    def _what_is_ours_is_left_alone(self) -> Self:
        for key, problem in conf_problems(self.spark_conf):
            raise problem_at(f"sparkConf.{key}", problem)
        return self

    @model_validator(mode="after")
    def _templates_have_what_is_not_said_elsewhere(self) -> Self:
        for name, pod, container in (
            ("driver", self.driver, DRIVER_CONTAINER),
            ("executor", self.executor, EXECUTOR_CONTAINER),
        ):
            for path, problem in chain(
                template_problems(pod.template, container), _said_elsewhere(pod.template, container)
            ):
                raise problem_at(f"{name}.template.{path}", problem)
        return self

    @model_validator(mode="after")
    def _each_variable_is_given_once(self) -> Self:
        for path, problem in env_problems(self.env):
            raise problem_at(path, problem)
        return self


def _said_elsewhere(template: Mapping[str, Any], container: str) -> Iterator[tuple[str, str]]:
    """What has fields of its own, which a LakeStream's go before. Of a template that can be looked into."""
    if "labels" in template.get("metadata", {}):
        yield "metadata.labels", "use job.labels"
    for one in template.get("spec", {}).get("containers", ()):
        if one.get("name") == container:
            for field in one.keys() & {"env", "envFrom"}:
                yield f"spec.containers.{container}.{field}", f"use job.{field}"


class PortSettings(ApiModel):
    """Where something is served."""

    port: int = Field(ge=0, le=65535)
    """TCP port on all addresses; 0: any free one."""


class LogSettings(ApiModel):
    """What is logged, as lines of JSON on standard error."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The least severe that is logged."""


class LeaderElectionSettings(ApiModel):
    """Which one of several replicas acts: the holder of a Lease."""

    enabled: bool = True
    """Off only where it is certain that there is one operator, as on a developer's machine."""

    lease_name: str = Field(default="lakestream-operator", min_length=1)
    """Name of the Lease."""

    namespace: str | None = None
    """Its namespace; without it, that of the operator's pod."""

    duration_seconds: int = Field(default=15, ge=3)
    """Seconds without renewal after which another replica takes over. The holder renews every fifth of it, and stops
    acting after two thirds of it without success."""


class Settings(ApiModel):
    """Settings of the operator."""

    job: JobSettings
    """Drivers and executors."""

    namespaces: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Namespaces whose LakeStreams are served; empty: all."""

    health: PortSettings = PortSettings(port=8080)
    """`/healthz`, `/readyz`."""

    metrics: PortSettings = PortSettings(port=9090)
    """`/metrics`, for Prometheus."""

    log: LogSettings = LogSettings()
    """Logging."""

    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    """Leader election."""


def load_settings(path: Path) -> Settings:
    """Read the settings file.

    Raises:
        SettingsError: there is no such file, or it does not say what the models above ask for.
    """
    try:
        return Settings.model_validate(_given(yaml.safe_load(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid YAML: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"{path}: {'; '.join(map(_problem, error.errors()))}") from error


def _given(settings: Any) -> Any:
    """Without what is null: helm hands on a value of which a file has nothing but the name, or comments below it.
    In a template it takes a field away."""
    if not isinstance(settings, dict):
        return settings
    given = {name: value for name, value in settings.items() if value is not None}
    return {name: value if name == "template" else _given(value) for name, value in given.items()}


def _problem(detail: ErrorDetails) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
    if detail["type"] == "lakestream":
        path += f".{detail['ctx']['field']}"
    return f"{path.removeprefix('.') or 'the file'}: {detail['msg']}"
