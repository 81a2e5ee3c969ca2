"""The chart's alerts and dashboard, against what operator and driver really export."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import CollectorRegistry

from lakestream.control import PrometheusProgress
from lakestream.testing.progress import progress_with
from lakestream_api import (
    Condition,
    ConditionStatus,
    ConditionType,
    Freshness,
    LakeStreamStatus,
    ShardProgress,
    StageSeconds,
    TableService,
    WriterStatus,
)
from lakestream_operator.metrics import Metrics, StreamMetrics

FILES = Path(__file__).parents[3] / "charts/lakestream/files"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Those that Prometheus gives each series of a pod.
OF_PODS = {"namespace", "pod", "instance", "job"}
Series = Mapping[str, set[str]]


def _exported(registry: CollectorRegistry) -> Series:
    return {one.name: set(one.labels) for family in registry.collect() for one in family.samples}


def _of_the_operator() -> Series:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.cycle(began=NOW, woken=NOW, ended=NOW)
    metrics.acted("Apply")
    metrics.failed("ApiError")
    writer = WriterStatus(name="hudi", lag_seconds=1, records_per_second=1)
    degraded = Condition(
        type=ConditionType.DEGRADED,
        status=ConditionStatus.TRUE,
        reason="DriverFailed",
        message="",
        last_transition_time=NOW,
    )
    status = LakeStreamStatus(writers=(writer,), conditions=(degraded,))
    registry.register(StreamMetrics(lambda: [(("lake", "orders"), status)]))
    return _exported(registry)


def _of_a_driver() -> Series:
    registry = CollectorRegistry()
    PrometheusProgress(registry).publish(
        progress_with(
            finished_at=NOW,
            seconds=StageSeconds(plan=1, fetch=1, write=1, commit=1),
            trigger_interval=timedelta(seconds=10),
            shards=(ShardProgress(shard_id="shard-0", tip_reached=True, lag_seconds=0, records=1, bytes=1),),
            freshness=Freshness(p50_seconds=1, p99_seconds=1),
            table_services=(TableService(name="compaction"),),
        )
    )
    return _exported(registry)


def _alerts() -> dict[str, str]:
    (group,) = yaml.safe_load((FILES / "alerts.yaml").read_text("utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def _dashboard() -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads((FILES / "dashboard.json").read_text("utf-8"))
    return dashboard


def _targets() -> Iterator[tuple[str, str, str]]:
    """Title, query and legend of all that the dashboard shows."""
    for panel in _dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


def _wrong(query: str, series: Series) -> list[str]:
    """What a query asks for that is not exported: names, labels of selectors, labels that it is grouped by."""
    used = re.findall(r"(lakestream_[a-z_]+)(?:\{([^}]*)\})?", query)
    unknown = [name for name, _ in used if name not in series]
    known = {name: series.get(name, set()) | OF_PODS for name, _ in used}
    unlabelled = [
        f"{name}{{{label}}}" for name, selector in used for label in _labels(selector) if label not in known[name]
    ]
    # A group is one of what comes next.
    grouped = re.findall(r"by \(([^)]*)\)(?=.*?(lakestream_[a-z_]+))", query, re.DOTALL)
    ungrouped = {label for labels, name in grouped for label in labels.split(", ") if label not in known[name] | {"le"}}
    return unknown + unlabelled + sorted(ungrouped)


def _labels(selector: str) -> list[str]:
    return re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)


SERIES = {**_of_the_operator(), **_of_a_driver()}


def test_no_metric_of_one_name_is_of_two_processes() -> None:
    assert set(_of_the_operator()) & set(_of_a_driver()) == set()


@pytest.mark.parametrize("query", list(_alerts().values()), ids=list(_alerts()))
def test_alerts_are_on_series_that_are_exported(query: str) -> None:
    assert _wrong(query, SERIES) == []


@pytest.mark.parametrize(("title", "query", "legend"), list(_targets()))
def test_panels_show_series_that_are_exported(title: str, query: str, legend: str) -> None:
    assert _wrong(query, SERIES) == [], title
    grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(",")}
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= grouped, title
    # LakeStreams of several namespaces may have one name.
    assert ("{{stream}}" in legend) <= ("{{namespace}}" in legend), title


def test_a_query_for_what_nobody_exports_is_found() -> None:
    assert _wrong("max by (writer) (lakestream_lag_seconds)", SERIES) == []
    assert _wrong("lakestream_lag", SERIES) == ["lakestream_lag"]
    assert _wrong('lakestream_lag_seconds{shard="1"}', SERIES) == ["lakestream_lag_seconds{shard}"]
    assert _wrong("max by (shard) (lakestream_lag_seconds)", SERIES) == ["shard"]


def test_the_dashboard_shows_all_that_operators_and_drivers_tell_of_a_stream() -> None:
    shown = {name for _, query, _ in _targets() for name in re.findall(r"lakestream_[a-z_]+", query)}
    topics = ("lag", "freshness", "records", "executors", "executors_target", "stage", "quarantined", "table_service")
    assert [topic for topic in topics if not any(name.startswith(f"lakestream_{topic}") for name in shown)] == []


def test_variables_ask_for_labels_that_there_are() -> None:
    for variable in _dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
            assert found is not None
            query, label = found.groups()
            assert _wrong(query, SERIES) == []
            assert label in SERIES[query.partition("{")[0]]


def test_panels_do_not_overlap_and_have_an_id_each() -> None:
    panels = _dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for grid in (panel["gridPos"] for panel in panels)
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_grafana_knows_every_field_of_the_dashboard() -> None:
    written = _dashboard()
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(written)))
    assert list(_lost(written, read)) == []
    written["panels"][1]["gridPos"]["widht"] = 1
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(written)))
    assert list(_lost(written, read)) == ["/panels/1/gridPos/widht"]


def _lost(written: Any, read: Any, at: str = "") -> Iterator[str]:
    """Paths of what Grafana's own types do not keep."""
    if isinstance(written, dict) and isinstance(read, dict):
        for key, value in written.items():
            yield from _lost(value, read[key], f"{at}/{key}") if key in read else [f"{at}/{key}"]
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from _lost(one, other, f"{at}/{number}")
    elif written != read:
        yield at


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not on PATH")
def test_alerts_fire_when_they_should() -> None:
    tests = Path(__file__).with_name("alerts_test.yaml")
    tested = {
        each["alertname"]
        for test in yaml.safe_load(tests.read_text("utf-8"))["tests"]
        for each in test["alert_rule_test"]
        if "exp_alerts" in each
    }
    assert tested == set(_alerts())
    done = subprocess.run(
        ["promtool", "test", "rules", str(tests)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
