"""What the schema of the chart lakestream takes for `job` is what the operator takes: else its pod would not start."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from pydantic import ValidationError

from lakestream_api.templates import _OWN_CONF, _PREFIXES
from lakestream_operator.settings import JobSettings

SCHEMA = json.loads((Path(__file__).parents[3] / "charts/lakestream/values.schema.json").read_text("utf-8"))


def _chart_takes(job: dict[str, Any]) -> bool:
    return bool(Draft7Validator(SCHEMA).is_valid({"job": job}))


def _operator_takes(job: dict[str, Any]) -> bool:
    try:
        JobSettings.model_validate({"image": "lakestream/spark:1", "clusterRole": "driver", **job})
    except ValidationError:
        return False
    return True


GOOD: list[dict[str, Any]] = [
    {"sparkConf": {"spark.network.timeout": "300s", "spark.executor.extraJavaOptions": "-XX:+UseZGC"}},
    {"sparkConf": {"spark.hadoop.fs.gs.x": "1", "spark.speculationOfMine": "1", "spark.uix": "1"}},
]
BAD: list[dict[str, Any]] = [
    {"sparkConf": {"spark.speculation": "true"}},
    {"sparkConf": {"spark.network.timeout": "300s", "spark.executor.memoryOverhead": "1g"}},
    {"sparkConf": {"spark.hadoop.fs.s3a.endpoint": "x"}},
    {"sparkConf": {"spark.ui.enabled": "false"}},
    {"sparkConf": {"fs.s3a.endpoint": "x"}},
    {"sparkConf": {"spark.network.timeout": 300}},
]


@pytest.mark.parametrize("job", GOOD, ids=str)
def test_chart_and_operator_take(job: dict[str, Any]) -> None:
    assert (_chart_takes(job), _operator_takes(job)) == (True, True)


@pytest.mark.parametrize("job", BAD, ids=str)
def test_chart_and_operator_refuse(job: dict[str, Any]) -> None:
    assert (_chart_takes(job), _operator_takes(job)) == (False, False)


def test_the_schema_names_all_of_sparks_configuration_that_is_ours() -> None:
    whole = [own.endswith(".") or own in _PREFIXES for own in _OWN_CONF]
    patterns = [f"^{re.escape(own)}{'' if more else '$'}" for own, more in zip(_OWN_CONF, whole, strict=True)]
    expected = [{"pattern": pattern} for pattern in patterns if pattern.startswith(r"^spark\.")]
    assert SCHEMA["definitions"]["ownSparkConf"]["anyOf"] == expected
