"""One installation for all end-to-end tests: on the current context of kubectl, with `--with-e2e`.

Images must be on the cluster under `<LAKESTREAM_E2E_REPOSITORY>/<image>:<LAKESTREAM_E2E_TAG>` (lakestream/…:dev).
`LAKESTREAM_E2E_KEEP=1` leaves everything in place to be looked at.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from cluster.commands import CommandError, Kubectl, Object, run
from cluster.findings import findings
from cluster.installation import LAKE, NAMESPACES, OTHER, ROOT, Release, installed, s3_environment
from cluster.lake import Lake
from cluster.stream import Stream
from lakestream.spark.session import SessionSettings, build_session
from lakestream.storage import S3Settings

EXAMPLE = ROOT / "examples" / "lakestream.yaml"


def pytest_configure(config: pytest.Config) -> None:
    # PySpark 3.5 compares PyArrow's version with what it brought along from distutils, or with distutils itself.
    for deprecated in ("distutils Version classes are deprecated", "The distutils package is deprecated"):
        config.addinivalue_line("filterwarnings", f"ignore:{deprecated}:DeprecationWarning")
    # It leaves the socket that brought a job's rows to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        try:
            report.sections.append(("cluster", findings(list(NAMESPACES))))
        except (CommandError, OSError) as error:
            report.sections.append(("cluster", str(error)))
    return report


@pytest.fixture(scope="session", autouse=True)
def installation(request: pytest.FixtureRequest) -> Iterator[Release]:
    """Operators, Kinesis and S3."""
    former = request.config.getoption("--former")
    release = Release() if former is None else Release.former(former)
    with installed(release):
        yield release


@pytest.fixture(scope="session")
def kubectl() -> Kubectl:
    return Kubectl(LAKE)


@pytest.fixture(scope="session")
def example() -> Object:
    """examples/lakestream.yaml, as a document; a copy for each who asks would be changed by none."""
    document: Object = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    document["spec"]["trigger"]["interval"] = "3s"
    # Two busy cores are no place for a scaling of its own accord: test_4 asks for it.
    document["spec"]["scaling"]["maxExecutors"] = 1
    return document


@pytest.fixture(scope="session")
def orders(installation: Release, kubectl: Kubectl, example: Object) -> Stream:
    """The example's LakeStream; lives through most tests, as it would in production."""
    kubectl.apply(example)
    return Stream(kubectl, "orders")


@pytest.fixture(scope="session")
def other(orders: Stream, example: Object) -> Stream:
    """Of the same name, on the Kinesis and S3 of the first one's namespace. Of some records its SQL makes nothing."""
    kubectl = Kubectl(OTHER)
    source = Kubectl(LAKE)
    config, secret = source.get("configmap", "local-aws"), source.get("secret", "local-aws")
    assert config is not None
    assert secret is not None
    for copied in (config, secret):
        copied["metadata"] = {"name": "local-aws"}
        kubectl.apply(copied)
    document = copy.deepcopy(example)
    document["spec"]["checkpoint"] = "s3a://lake/_checkpoints/other"
    document["spec"]["writers"] = [{"name": "json", "json": {"path": "s3a://lake/other_json"}}]
    document["spec"]["transform"] += " WHERE crc32(event_id) % 997 <> 0 OR raise_error('no result') IS NULL"
    kubectl.apply(document)
    return Stream(kubectl, "orders")


@pytest.fixture(scope="session")
def lake() -> Lake:
    return Lake(
        ledger="s3://lake/_ledger",
        json="s3a://lake/orders_json",
        hudi="s3a://lake/orders_hudi",
        checkpoint="s3a://lake/_checkpoints/orders",
    )


@pytest.fixture(scope="session")
def s3(installation: Release) -> Iterator[dict[str, str]]:
    """The environment that leads to the lake's S3, also for this process."""
    with s3_environment(LAKE) as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


@pytest.fixture(scope="session")
def spark(s3: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on this machine, as somebody who queries the lake."""
    session = build_session(
        SessionSettings(
            app_name="lakestream-e2e",
            cores=2,
            driver_memory="1g",
            hudi=True,
            s3=S3Settings.from_environment(s3, s3["AWS_REGION"]),
            local_dir=tmp_path_factory.mktemp("spark-local"),
            # Each query is asked once: the optimising compiler would only take time from it.
            conf={"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"},
        )
    )
    yield session
    session.stop()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path


def pytest_sessionstart() -> None:
    """Fail at once, and clearly, without a cluster."""
    try:
        run("kubectl", "version", seconds=20)
    except (CommandError, OSError) as error:
        raise pytest.UsageError(f"end-to-end tests need kubectl, helm and a cluster: {error}") from error
