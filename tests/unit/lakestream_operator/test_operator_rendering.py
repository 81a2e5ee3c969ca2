"""What objects look like."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lakestream_api import InvalidDocumentError, load_lakestream
from lakestream_operator.model import Manifest
from lakestream_operator.observer import stream_of
from lakestream_operator.render import (
    Plan,
    document_manifest,
    is_restart,
    plan_of,
    render_application,
    supports,
    wanted_of,
)
from lakestream_operator.render.document import _wanted as wanted_cache
from lakestream_operator.settings import JobSettings
from lakestream_operator.testing import lakestream

OWNER = stream_of({**lakestream(), "metadata": {"name": "orders", "namespace": "lake", "uid": "uid-1"}})
JOB = JobSettings.model_validate(
    {
        "image": "lakestream/spark:1",
        "clusterRole": "driver",
        "env": [{"name": "AWS_REGION", "value": "eu-west-1"}, {"name": "LEVEL", "value": "INFO"}],
        "envFrom": [{"secretRef": {"name": "aws"}}],
        "sparkConf": {"spark.network.timeout": "60s"},
    }
)


def _plan(writer: str = "json", *, restart: str = "", **spec: Any) -> Plan:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "uid-1", "annotations": {"lakestream.dev/restart": restart} if restart else {}}
    manifest["spec"] |= spec
    return wanted_of(stream_of(manifest)).plans[writer]


def _pods(application: Manifest) -> list[Any]:
    return [application["spec"][role]["template"]["spec"] for role in ("driver", "executor")]


@pytest.mark.parametrize(
    "spec",
    [
        {"scaling": {"maxExecutors": 50}},
        {"suspend": True},
        {"rollback": True},
        {"trigger": {"interval": "10s", "maxRecordsPerBatch": 500_000}},
        {"resources": {}},
        {"source": {"kinesis": {"stream": "orders", "region": "eu-west-1", "shards": {"min": 1, "max": 9}}}},
    ],
    ids=str,
)
def test_no_restart_for(spec: dict[str, Any]) -> None:
    assert _plan(**spec).document == _plan().document


@given(st.text())
@example("\x85")
@example("SELECT *,\x85 '\u2028' AS a\r\n FROM events")
def test_a_driver_is_given_each_character_as_it_is(text: str) -> None:
    plan = _plan(kubernetes={"env": [{"name": "A", "value": text}], "podAnnotations": {"note": text}}, restart=text)
    pods = plan.stream.spec.kubernetes
    assert (pods.env[0].value, pods.pod_annotations) == (text, {"note": text})
    assert plan.stream.metadata.annotations.get("lakestream.dev/restart", "") == text


@pytest.mark.parametrize(
    "spec",
    [
        {"schema": "order_id string"},
        {"trigger": {"interval": "20s"}},
        {"resources": {"executor": {"memory": "8g"}}},
        {"kubernetes": {"image": "mine:1"}},
        {"checkpoint": "s3a://lake/_checkpoints/other"},
        {"restart": "again"},
    ],
    ids=str,
)
def test_a_restart_for(spec: dict[str, Any]) -> None:
    assert _plan(**spec).fingerprint != _plan().fingerprint


def test_another_writer_is_nothing_to_this_one() -> None:
    writers = lakestream(writers=("json", "hudi"))["spec"]["writers"]
    assert _plan(writers=writers).fingerprint == _plan().fingerprint


def test_the_fingerprint_is_that_of_the_first_release() -> None:
    # Another value here would restart every driver there is when the operator is upgraded.
    assert _plan().fingerprint == "24aa746caada0067"


def test_the_api_server_writing_defaults_into_a_spec_restarts_nothing() -> None:
    # Fails when a default is changed, and not kept in FORMER_DEFAULTS: all drivers would be restarted by an upgrade.
    spec = yaml.safe_load(Path(__file__).with_name("defaulted.yaml").read_text("utf-8"))
    plans = {name: _plan(name, **spec).fingerprint for name in ("json", "hudi")}
    assert plans == {"json": "24aa746caada0067", "hudi": "cd3e1c8bafd3b4b8"}


@pytest.fixture
def _once_smaller(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operator of a release that has changed two defaults, from 100,000 records and 3 hours."""
    former = {
        ("spec", "trigger", "maxRecordsPerBatch"): 100_000,
        ("spec", "writers", "*", "hudi?", "cleaning", "retainHours"): 3,
    }
    caches = (plan_of, wanted_cache)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr("lakestream_operator.render.document.FORMER_DEFAULTS", former)
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("_once_smaller")
@pytest.mark.parametrize("name", ["json", "hudi"])
def test_a_default_that_has_changed_restarts_nothing(name: str) -> None:
    hudi = {"path": "s3a://lake/orders_hudi", "tableType": "COPY_ON_WRITE", "recordKey": ["order_id"]}
    json_files = {"name": "json", "json": {"path": "s3a://lake/orders_json"}}
    # What the earlier release has left out of its document, the API server has written into the spec.
    writers = [
        json_files,
        {"name": "hudi", "hudi": {**hudi, "orderingField": "amount", "cleaning": {"retainHours": 3}}},
    ]
    trigger = {"interval": "10s", "maxRecordsPerBatch": 100_000}
    kept = _plan(name, writers=writers, trigger=trigger)
    ran = yaml.safe_load(kept.document)
    del ran["spec"]["trigger"]
    ran["spec"]["writers"][0].get("hudi", {}).pop("cleaning", None)
    before = plan_of(yaml.safe_dump(ran))
    assert before.fingerprint == kept.fingerprint
    assert is_restart(yaml.safe_dump(ran), kept.document)
    assert before.stream.spec.trigger.max_records_per_batch == 100_000, "it means what it meant when it was written"
    # The default of today is another value, and is told to the driver.
    changed = _plan(name, writers=writers, trigger={**trigger, "maxRecordsPerBatch": 500_000})
    assert changed.fingerprint != kept.fingerprint
    assert yaml.safe_load(changed.document)["spec"]["trigger"]["maxRecordsPerBatch"] == 500_000
    # The hash is that of the earlier release, which knew of no such thing.
    said = json.dumps(ran, sort_keys=True)
    assert kept.fingerprint == hashlib.sha256(said.encode()).hexdigest()[:16]


def test_a_document_makes_its_own_plan_again() -> None:
    plan = _plan(kubernetes={"image": "mine:1"})
    assert plan_of(plan.document) == plan
    assert load_lakestream(plan.document).spec.kubernetes.image == "mine:1"


@pytest.mark.parametrize("odd", ["2026-13-45", "{2026-01-01: 1}", "{1: 2, b: 3}", "{true: 1, b: 2}"])
def test_a_document_into_which_somebody_wrote_what_json_does_not_have_is_read(odd: str) -> None:
    plan = _plan(kubernetes={"driver": {"template": {"spec": {"x": "odd"}}}})
    changed = plan_of(plan.document.replace("odd", odd))
    assert changed.fingerprint != plan.fingerprint
    assert not is_restart(changed.document, plan.document)


@pytest.mark.parametrize("levels", [250, 5_000], ids=["more than is read", "more than Python takes"])
def test_a_spec_that_is_nested_too_deeply_is_invalid(levels: int) -> None:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    with pytest.raises(InvalidDocumentError, match="is nested too deeply"):
        _plan(kubernetes={"driver": {"template": {"spec": {"x": nested}}}})


def test_pods_keep_to_the_restricted_standard() -> None:
    for pod in _pods(render_application(_plan(), OWNER, JOB, 1)):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


def test_drivers_have_a_token_of_the_api_server_whatever_their_account_says_and_executors_none() -> None:
    driver, executor = _pods(render_application(_plan(kubernetes={"serviceAccount": "theirs"}), OWNER, JOB, 1))
    assert driver["automountServiceAccountToken"] is True
    assert executor["automountServiceAccountToken"] is False


def test_drivers_and_executors_log_lines_of_json() -> None:
    for pod in _pods(render_application(_plan(), OWNER, JOB, 3)):
        assert {"name": "LAKESTREAM_LOG_FORMAT", "value": "json"} in pod["containers"][0]["env"]


def test_a_lakestreams_own_settings_win_over_the_operators() -> None:
    env = [{"name": "LEVEL", "value": "DEBUG"}, {"name": "LAKESTREAM_LOG_FORMAT", "value": "text"}]
    kubernetes = {
        "image": "mine:1",
        "env": env,
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "podLabels": {"team": "lake"},
        "priorityClassName": "high",
        "driver": {"coreRequest": "100m"},
    }
    application = render_application(_plan(kubernetes=kubernetes), OWNER, JOB, 3)
    spec = application["spec"]
    assert (spec["image"], spec["executor"]["instances"], spec["driver"]["coreRequest"]) == ("mine:1", 3, "100m")
    for pod in _pods(application):
        (container,) = pod["containers"]
        values = {one["name"]: one.get("value") for one in container["env"]}
        assert (values["LEVEL"], values["AWS_REGION"], values["HOME"]) == ("DEBUG", "eu-west-1", "/tmp")
        assert values["LAKESTREAM_LOG_FORMAT"] == "text"
        assert container["envFrom"] == [{"secretRef": {"name": "aws"}}]
        assert pod["nodeSelector"] == {"disk": "fast"}
        assert pod["tolerations"] == [{"key": "spot", "operator": "Exists"}]
        assert pod["priorityClassName"] == "high"
    assert spec["driver"]["template"]["metadata"]["labels"]["team"] == "lake"


def test_executors_of_the_example_are_spread_whatever_it_is_renamed_to() -> None:
    """As by a namePrefix of kustomize, which does not look into templates."""
    example = yaml.safe_load((Path(__file__).parents[3] / "examples/placement.yaml").read_text("utf-8"))
    example["metadata"] = {"name": "eu-placed", "namespace": "lake", "uid": "uid-1"}
    (plan,) = wanted_of(stream_of(example)).plans.values()
    template = render_application(plan, stream_of(example), JOB, 2)["spec"]["executor"]["template"]
    (constraint,) = template["spec"]["topologySpreadConstraints"]
    labels = template["metadata"]["labels"] | {"spark-role": "executor"}
    assert constraint["labelSelector"]["matchLabels"].items() <= labels.items()
    assert {key: labels[key] for key in constraint["matchLabelKeys"]} == {"lakestream.dev/stream": "eu-placed"}


@pytest.mark.parametrize("of_the_chart", [False, True])
def test_all_pods_of_the_example_have_the_certificates_where_they_are_told_of_them(of_the_chart: bool) -> None:
    examples = Path(__file__).parents[3] / "examples"
    example = yaml.safe_load((examples / "private-ca.yaml").read_text("utf-8"))
    example["metadata"] |= {"namespace": "lake", "uid": "uid-1"}
    job = JOB
    if of_the_chart:
        del example["spec"]["kubernetes"]
        values = yaml.safe_load((examples / "values/private-ca.yaml").read_text("utf-8"))
        job = JobSettings.model_validate({"image": "lakestream/spark:1", "clusterRole": "driver", **values["job"]})
    (plan,) = wanted_of(stream_of(example)).plans.values()
    application = render_application(plan, stream_of(example), job, 2)
    for role, pod in zip(("driver", "executor"), _pods(application), strict=True):
        assert {"name": "ca", "configMap": {"name": "ca"}} in pod["volumes"]
        (container,) = pod["containers"]
        (folder,) = (one["mountPath"] for one in container["volumeMounts"] if one["name"] == "ca")
        told = {one["name"]: one.get("value") for one in container["env"]}
        assert told["AWS_CA_BUNDLE"] == told["SSL_CERT_FILE"] == f"{folder}/ca.crt"
        options = application["spec"]["sparkConf"][f"spark.{role}.extraJavaOptions"]
        assert options.split()[0] == f"-Djavax.net.ssl.trustStore={folder}/ca.p12"


def test_pods_and_the_drivers_service_have_the_labels_of_the_operators_settings() -> None:
    job = JOB.model_copy(update={"labels": {"team": "data", "example.com/cost-centre": "1"}})
    plan = _plan(kubernetes={"podLabels": {"team": "shop"}})
    spec = render_application(plan, OWNER, job, 3)["spec"]
    for role in ("driver", "executor"):
        labels = spec[role]["template"]["metadata"]["labels"]
        assert (labels["team"], labels["example.com/cost-centre"]) == ("shop", "1")
    prefix = "spark.kubernetes.driver.service.label."
    of_the_service = {key.removeprefix(prefix): one for key, one in spec["sparkConf"].items() if key.startswith(prefix)}
    assert of_the_service == spec["sparkUIOptions"]["serviceLabels"] == job.labels
    own = job.model_copy(update={"spark_conf": {f"{prefix}team": "mine"}})
    assert render_application(plan, OWNER, own, 3)["spec"]["sparkConf"][f"{prefix}team"] == "mine"


@pytest.mark.parametrize(
    ("heap", "cores", "driver", "executor"),
    [("1g", 1, "640m", "640m"), ("1500m", 4, "640m", "1408m"), ("8g", 2, "3276m", "3276m")],
)
def test_memory_beside_the_heap(heap: str, cores: int, driver: str, executor: str) -> None:
    resources = {"driver": {"memory": heap}, "executor": {"memory": heap, "cores": cores}}
    spec = render_application(_plan(resources=resources), OWNER, JOB, 1)["spec"]
    assert (spec["driver"]["memoryOverhead"], spec["executor"]["memoryOverhead"]) == (driver, executor)
    given = {"driver": {"memoryOverhead": "300m"}, "executor": {"memoryOverhead": "2g"}}
    spec = render_application(_plan(resources=resources, kubernetes=given), OWNER, JOB, 1)["spec"]
    assert (spec["driver"]["memoryOverhead"], spec["executor"]["memoryOverhead"]) == ("300m", "2g")


def test_sparks_configuration_has_what_names_rest_on_and_what_the_settings_add() -> None:
    assert render_application(_plan(), OWNER, JOB, 1)["spec"]["sparkConf"] == {
        "spark.kubernetes.driver.pod.name": "orders-json-driver",
        "spark.kubernetes.executor.podNamePrefix": "orders-json",
        "spark.network.timeout": "60s",
    }


def test_the_spark_operator_restarts_nothing() -> None:
    assert render_application(_plan(), OWNER, JOB, 1)["spec"]["restartPolicy"] == {"type": "Never"}


def test_an_account_is_made_unless_one_is_named() -> None:
    made = supports(
        _plan(kubernetes={"serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn"}}), OWNER, "role"
    )
    (account,) = (one for one in made if one["kind"] == "ServiceAccount")
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn"}
    named = supports(_plan(kubernetes={"serviceAccount": "mine"}), OWNER, "role")
    assert [one["kind"] for one in named] == ["RoleBinding", "ConfigMap"]
    assert named[0]["subjects"][0]["name"] == "mine"
    application = render_application(_plan(kubernetes={"serviceAccount": "mine"}), OWNER, JOB, 1)
    assert (
        application["spec"]["driver"]["serviceAccount"] == application["spec"]["executor"]["serviceAccount"] == "mine"
    )


def test_everything_belongs_to_the_lakestream() -> None:
    plan = _plan()
    made = [
        *supports(plan, OWNER, "role"),
        document_manifest(plan, OWNER, None),
        render_application(plan, OWNER, JOB, 1),
    ]
    for manifest in made:
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("LakeStream", "uid-1", True)
        assert manifest["metadata"]["labels"]["lakestream.dev/writer"] == "json"


def test_the_progress_is_the_drivers_alone() -> None:
    (progress,) = (one for one in supports(_plan(), OWNER, "role") if one["metadata"]["name"].endswith("-progress"))
    assert "data" not in progress
