"""What the operator renders is what a driver takes, and what a driver says is what the operator understands."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lakestream import settings, statuses
from lakestream.main import app
from lakestream.spark.session import SessionSettings, common_conf
from lakestream.storage import S3Settings
from lakestream_api import Control, DriverReport, WriterNames, load_lakestream
from lakestream_api.names import (
    CONTROL_KEY,
    DOCUMENT_KEY,
    DOCUMENT_PATH,
    NAMESPACE_VARIABLE,
    POD_UID_VARIABLE,
    POD_VARIABLE,
    REPORT_KEY,
)
from lakestream_api.templates import conf_problems
from lakestream_operator.model import Kind, Memory
from lakestream_operator.observer import stream_of, writer_of
from lakestream_operator.render import (
    Plan,
    control_manifest,
    document_manifest,
    render_application,
    supports,
    wanted_of,
)
from lakestream_operator.settings import JobSettings
from lakestream_operator.testing import lakestream, report_of
from lakestream_operator.writers.failures import Exit

OWNER = stream_of({**lakestream(), "metadata": {"name": "orders", "namespace": "lake", "uid": "uid-1"}})
JOB = JobSettings(image="lakestream/spark:test", cluster_role="lakestream-driver")
EXAMPLES = Path(__file__).parents[3] / "examples"


def _plan(**spec: Any) -> Plan:
    manifest = lakestream()
    manifest["metadata"]["uid"] = "uid-1"
    manifest["spec"] |= spec
    return wanted_of(stream_of(manifest)).plans["json"]


def test_the_command_line_is_one_of_the_driver(tmp_path: Path) -> None:
    application = render_application(_plan(), OWNER, JOB, 2)
    document = tmp_path / "lakestream.yaml"
    document.write_text(_plan().document)
    arguments = [str(document) if one == DOCUMENT_PATH else one for one in application["spec"]["arguments"]]
    assert arguments != application["spec"]["arguments"], "the document is where it is mounted"
    command = typer.main.get_command(app)
    name, ingest, rest = command.resolve_command(command.make_context("lakestream", list(arguments)), arguments)  # type: ignore[attr-defined]
    context = ingest.make_context(name, list(rest))
    assert (name, context.params["writer"], context.params["cluster"]) == ("ingest", "json", True)
    assert load_lakestream(context.params["file"].read_text()) == _plan().stream


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_a_driver_does_the_same_with_its_document_as_with_the_whole_one(example: Path) -> None:
    whole = load_lakestream(example.read_text())
    manifest = whole.model_dump(mode="json", by_alias=True)
    manifest["metadata"] |= {"uid": "uid-1", "namespace": "lake"}
    # On a cluster every location is on S3, as the CRD says; here it is the rest that counts.
    for name, plan in wanted_of(stream_of(manifest)).plans.items():
        given = load_lakestream(plan.document)
        assert given.writer(name) == whole.writer(name)
        definition = settings.definition(given, given.writer(name))
        assert definition == settings.definition(whole, whole.writer(name))
        assert settings.engine_settings(given, definition) == settings.engine_settings(whole, definition)
        assert settings.planner_settings(given, given.writer(name)) == settings.planner_settings(
            whole, whole.writer(name)
        )
        assert settings.kinesis_settings(given.spec.source.kinesis, given.writer(name)) == settings.kinesis_settings(
            whole.spec.source.kinesis, whole.writer(name)
        )
        assert given.spec.event_schema == whole.spec.event_schema
        assert given.spec.transform == whole.spec.transform
        assert given.spec.checkpoint == whole.spec.checkpoint


def test_a_driver_knows_whose_stream_it_reads() -> None:
    plan = _plan(source={"kinesis": {"stream": "orders", "region": "eu-west-1", "account": "111122223333"}})
    spec = load_lakestream(plan.document).spec
    assert settings.kinesis_settings(spec.source.kinesis, spec.writers[0]).account == "111122223333"


def test_the_driver_knows_its_pod_and_finds_its_config_maps() -> None:
    plan = _plan()
    names = WriterNames("orders", "json")
    template = render_application(plan, OWNER, JOB, 2)["spec"]["driver"]["template"]["spec"]
    (container,) = template["containers"]
    assert {POD_VARIABLE, POD_UID_VARIABLE, NAMESPACE_VARIABLE} <= {one["name"] for one in container["env"]}
    made = {one["metadata"]["name"] for one in supports(plan, OWNER, "role") if one["kind"] == Kind.ConfigMap.name}
    assert made == {names.progress}
    document = document_manifest(plan, OWNER, None)
    (volume,) = (one for one in template["volumes"] if one["name"] == "document")
    assert volume["configMap"]["name"] == document["metadata"]["name"] == names.document
    assert document["data"].keys() == {DOCUMENT_KEY}
    assert [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "document"] == [
        str(Path(DOCUMENT_PATH).parent)
    ]


def test_the_driver_understands_its_orders() -> None:
    orders = Control(executors=3, shards=8, drain="Suspended-pod-1")
    manifest = control_manifest(WriterNames("orders", "json"), OWNER, orders, Memory())
    assert Control.model_validate_json(manifest["data"][CONTROL_KEY]) == orders


def test_the_operator_understands_a_report() -> None:
    report = report_of(datetime(2026, 1, 1, tzinfo=UTC), batches=40)
    written = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "orders-json-progress", "namespace": "lake"},
        "data": {REPORT_KEY: DriverReport.model_dump_json(report)},
    }
    assert writer_of(WriterNames("orders", "json"), [written]).report == report


def test_both_mean_the_same_by_an_exit_status() -> None:
    assert {one.name: one.value for one in statuses.Exit}.items() <= {one.name: one.value for one in Exit}.items()


def test_what_the_driver_sets_of_spark_no_lakestream_may_set() -> None:
    s3 = S3Settings("eu-west-1", endpoint="http://s3:7070")
    ours = common_conf(SessionSettings("orders", executors=1, hudi=True, s3=s3)).keys()
    refused = {key for key, _ in conf_problems(dict.fromkeys(ours, "x"))}
    assert ours - refused == set(), "it would be ignored"
