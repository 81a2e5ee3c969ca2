"""What the schema of the chart lakestream takes for `job` is what the operator takes: else its pod would not start."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from pydantic import ValidationError

from lakestream_api.templates import _OF_THE_SERVICE, _OWN_CONF, _PREFIXES
from lakestream_operator.settings import JobSettings

CHART = Path(__file__).parents[3] / "charts/lakestream"
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))


def _chart_takes(job: dict[str, Any]) -> bool:
    return bool(Draft7Validator(SCHEMA).is_valid({**VALUES, "job": {**VALUES["job"], **job}}))


def _operator_takes(job: dict[str, Any]) -> bool:
    try:
        JobSettings.model_validate({"image": "lakestream/spark:1", "clusterRole": "driver", **job})
    except ValidationError:
        return False
    return True


def _env(**variable: Any) -> dict[str, Any]:
    return {"env": [{"name": "A", **variable}]}


KEY = {"name": "aws", "key": "id"}
GOOD: list[dict[str, Any]] = [
    {"sparkConf": {"spark.network.timeout": "300s", "spark.executor.extraJavaOptions": "-XX:+UseZGC"}},
    {
        "sparkConf": {
            "spark.kubernetes.driver.service.ipFamilies": "IPv6",
            "spark.kubernetes.driver.service.label.a": "b",
        }
    },
    {"driver": {}, "executor": {"template": {}}},
    {
        "driver": {
            "template": {
                "metadata": {"annotations": {"a": "b"}},
                "spec": {"securityContext": {"runAsUser": None}, "tolerations": [{"key": "lake"}]},
            }
        }
    },
    {"sparkConf": {"spark.hadoop.fs.gs.x": "1", "spark.speculationOfMine": "1", "spark.uix": "1"}},
    {"env": [], "envFrom": []},
    {"labels": {"team": "data", "example.com/cost-centre": "1234", "a_B.c": ""}},
    _env(value=""),
    _env(name="_a.B-1", value="x" * 8192),
    _env(name="HOMES", value="x"),
    _env(name="LAKESTREAM_LOG_LEVEL", value="DEBUG"),
    _env(valueFrom={"secretKeyRef": KEY}),
    _env(valueFrom={"secretKeyRef": {**KEY, "key": ".aws_Key-1"}}),
    _env(valueFrom={"configMapKeyRef": {**KEY, "optional": True}}),
    {"envFrom": [{"secretRef": {"name": "a.b-c"}}, {"configMapRef": {"name": "a", "optional": True}, "prefix": "A_"}]},
]
BAD: list[dict[str, Any]] = [
    {"sparkConf": {"spark.speculation": "true"}},
    {"sparkConf": {"spark.network.timeout": "300s", "spark.executor.memoryOverhead": "1g"}},
    {"sparkConf": {"spark.kubernetes.driver.service.deleteOnTermination": "false"}},
    {"sparkConf": {"spark.hadoop.fs.s3a.endpoint": "x"}},
    {"sparkConf": {"spark.ui.enabled": "false"}},
    {"sparkConf": {"fs.s3a.endpoint": "x"}},
    {"sparkConf": {"spark.network.timeout": 300}},
    {"driver": {"templates": {}}},
    *[
        {pod: {"template": template}}
        for pod in ("driver", "executor")
        for template in (
            {"kind": "Pod"},
            {"metadata": {"labels": {"team": "data"}}},
            {"metadata": {"name": "x"}},
            {"spec": []},
            {"spec": {"serviceAccountName": "x"}},
            {"spec": {"automountServiceAccountToken": True}},
        )
    ],
    *[
        {"labels": {key: "x"}}
        for key in ("lakestream.dev/stream", "app.kubernetes.io/name", "spark-role", "a.sparkx/b")
    ],
    *[{"labels": {key: "x"}} for key in ("", "-a", "Example.com/a", "a/b/c", "x" * 64)],
    *[{"labels": {"team": value}} for value in (1, "data platform", "a-", "x" * 64)],
    _env(),
    _env(value=1),
    _env(value="x", valueFrom={"secretKeyRef": KEY}),
    _env(value="x", other="y"),
    _env(name="1A", value="x"),
    _env(name="", value="x"),
    *[_env(name=own, value="x") for own in ("HOME", "PYTHONPATH", "LAKESTREAM_POD", "SPARK_HOME", "PYSPARK_PYTHON")],
    _env(name="A" * 257, value="x"),
    _env(value="x" * 8193),
    {"env": [{"value": "x"}]},
    _env(valueFrom={}),
    _env(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    _env(valueFrom={"resourceFieldRef": {"resource": "limits.cpu"}}),
    _env(valueFrom={"secretKeyRef": KEY, "configMapKeyRef": KEY}),
    _env(valueFrom={"secretKeyRef": {"name": "aws"}}),
    _env(valueFrom={"secretKeyRef": {"key": "id"}}),
    _env(valueFrom={"secretKeyRef": {**KEY, "name": "AWS"}}),
    _env(valueFrom={"secretKeyRef": {**KEY, "key": ""}}),
    *[_env(valueFrom={"secretKeyRef": {**KEY, "key": key}}) for key in ("x" * 254, "access key", ".", "..", "..data")],
    {"envFrom": [{}]},
    {"envFrom": [{"prefix": "A_"}]},
    {"envFrom": [{"secretRef": {}}]},
    {"envFrom": [{"secretRef": {"name": "a" * 254}}]},
    {"envFrom": [{"secretRef": {"name": "a..b"}}]},
    {"envFrom": [{"secretRef": {"name": "a", "key": "b"}}]},
    {"envFrom": [{"secretRef": {"name": "a"}, "configMapRef": {"name": "a"}}]},
    *[{"envFrom": [{"secretRef": {"name": "a"}, "prefix": prefix}]} for prefix in ("x" * 254, "1_", "A B", "A=")],
]


def _shortly(job: dict[str, Any]) -> str:
    return re.sub(r"(x|a|A)\1{9,}", r"\1…", str(job))


@pytest.mark.parametrize("job", GOOD, ids=_shortly)
def test_chart_and_operator_take(job: dict[str, Any]) -> None:
    assert (_chart_takes(job), _operator_takes(job)) == (True, True)


@pytest.mark.parametrize("job", BAD, ids=_shortly)
def test_chart_and_operator_refuse(job: dict[str, Any]) -> None:
    assert (_chart_takes(job), _operator_takes(job)) == (False, False)


def test_the_schema_names_all_of_sparks_configuration_that_is_ours() -> None:
    whole = [own.endswith(".") or own in _PREFIXES for own in _OWN_CONF]
    patterns = [f"^{re.escape(own)}{'' if more else '$'}" for own, more in zip(_OWN_CONF, whole, strict=True)]
    expected = [{"pattern": pattern} for pattern in patterns if pattern.startswith(r"^spark\.")]
    ours = SCHEMA["definitions"]["ownSparkConf"]
    assert ours["anyOf"] == expected
    assert ours["not"]["anyOf"] == [{"pattern": f"^{re.escape(one)}"} for one in _OF_THE_SERVICE]
