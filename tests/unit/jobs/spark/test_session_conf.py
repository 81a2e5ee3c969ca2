"""The session's configuration, which is a function of its settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from lakestream.errors import SettingsError
from lakestream.spark.session import SessionSettings, build_session, cluster_conf, common_conf, local_conf
from lakestream.spark.tasktime import SERVICES_POOL
from lakestream.storage import S3Settings


def test_without_s3_and_hudi_nothing_of_them_is_configured() -> None:
    conf = common_conf(SessionSettings("app", cores=2))
    assert not [key for key in conf if "s3a" in key or "extensions" in key or "serializer" in key]


def test_a_server_other_than_aws_is_addressed_by_path() -> None:
    conf = common_conf(SessionSettings("app", s3=S3Settings("eu-west-1", "http://127.0.0.1:7070")))
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:7070"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"


def test_aws_is_addressed_as_it_wants_to_be() -> None:
    conf = common_conf(SessionSettings("app", s3=S3Settings("eu-west-1")))
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    assert "spark.hadoop.fs.s3a.endpoint" not in conf
    assert "spark.hadoop.fs.s3a.path.style.access" not in conf


def options_of(conf: Mapping[str, str]) -> list[str]:
    """Of the driver's JVM, taken apart as Spark's launcher does."""
    return shlex.split(conf["spark.driver.extraJavaOptions"])


def test_local_mode_has_its_class_path_memory_and_logging() -> None:
    conf = local_conf(
        SessionSettings("app", cores=2, driver_memory="3g"), "/jars/a.jar:/spark/b.jar", Path("/none.jsa")
    )
    assert conf["spark.driver.extraClassPath"] == "/jars/a.jar:/spark/b.jar"
    assert conf["spark.driver.memory"] == "3g"
    log4j2 = next(one for one in options_of(conf) if one.startswith("-Dlog4j2.configurationFile="))
    assert Path(unquote(urlsplit(log4j2.partition("=")[2]).path)).is_file()


def test_there_may_be_blanks_in_paths(tmp_path: Path) -> None:
    archive = tmp_path / "a home" / "classes.jsa"
    archive.parent.mkdir()
    archive.touch()
    options = options_of(local_conf(SessionSettings("app", cores=2), "/jars/a.jar", archive))
    assert f"-XX:SharedArchiveFile={archive}" in options
    assert all(option.startswith("-") for option in options)


def test_a_cluster_starts_with_as_many_executors_as_are_wanted() -> None:
    assert common_conf(SessionSettings("app", executors=7))["spark.executor.instances"] == "7"
    assert "spark.executor.instances" not in common_conf(SessionSettings("app"))


def test_what_may_be_set_otherwise_on_a_cluster_is_not_what_must_hold_everywhere() -> None:
    settings = SessionSettings("app", hudi=True, s3=S3Settings("eu-west-1"), executors=7)
    assert not cluster_conf("-Dx=y").keys() & common_conf(settings).keys()


def test_losing_executors_now_and_then_does_not_end_a_driver() -> None:
    # Spark's default counts over the whole life of a driver.
    assert cluster_conf("-Dx=y")["spark.executor.failuresValidityInterval"] == "10min"


def test_a_driver_that_begins_anew_in_its_pod_keeps_the_name_by_which_executors_find_it() -> None:
    assert cluster_conf("-Dx=y")["spark.kubernetes.driver.service.deleteOnTermination"] == "false"


def test_spark_is_told_of_its_pools_wherever_it_runs() -> None:
    conf = common_conf(SessionSettings("app"))
    pools = ElementTree.parse(conf["spark.scheduler.allocation.file"].removeprefix("file:")).findall("pool")
    assert SERVICES_POOL in {pool.get("name") for pool in pools}


def test_a_cluster_that_nobody_has_named_is_refused_before_a_jvm_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match="--cluster takes Spark's master from spark-submit, and none has started"):
        build_session(SessionSettings("app"))
