"""The Spark session of one writer: local mode on a laptop, or the cluster that spark-submit was given."""

import logging
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lakestream.errors import SettingsError
from lakestream.spark.archive import archive_options, image_archive, local_archive, local_class_path
from lakestream.spark.environment import take_local_environment
from lakestream.spark.hudi import HUDI_CONF
from lakestream.spark.local_files import LOCAL_FILES
from lakestream.spark.names import keep_names
from lakestream.storage import S3Settings

logger = logging.getLogger(__name__)

with as_file(files("lakestream.spark").joinpath("log4j2.properties")) as _log4j2:
    _LOGGING = f"-Dlog4j2.configurationFile={_log4j2.absolute().as_uri()}"
with as_file(files("lakestream.spark").joinpath("fairscheduler.xml")) as _pools:
    _POOLS = f"file:{_pools.absolute()}"


@dataclass(frozen=True)
class SessionSettings:
    """What a session is made from."""

    app_name: str
    """Shown in Spark's UI and by the cluster manager."""
    cores: int | None = None
    """Task slots of local mode. None: the master (and the class path) are spark-submit's."""
    driver_memory: str = "2g"
    """Heap of local mode's one JVM; on a cluster it is spark-submit's."""
    executors: int | None = None
    """To begin with on a cluster, whatever spark-submit was told; None: as many as that."""
    hudi: bool = False
    """Whether the session has Hudi's SQL extension and catalog."""
    s3: S3Settings | None = None
    """None: no path of this application is on S3."""
    ui: bool = False
    """Whether Spark's web UI is served."""
    local_dir: Path | None = None
    """Where blocks are spilled; None: Spark's default."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Any Spark configuration; it has the last word."""


def build_session(settings: SessionSettings) -> SparkSession:
    """Start Spark (in this process's one JVM), or return the session that runs already.

    In local mode this resolves the pinned jars on first use and picks a Java 17.

    Raises:
        JavaNotFoundError, LocalSparkError, JarsUnavailableError: as told there.
        SettingsError: as `require_submitted`.
    """
    conf = _on_cluster(settings) if settings.cores is None else _on_this_machine(settings, settings.cores)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    if settings.cores is not None:
        _keep_no_checksums(spark)
    logger.info("Spark %s is there: %s", spark.version, spark.sparkContext.applicationId)
    return spark


def require_submitted() -> None:
    """Check that a cluster is meant: without spark-submit's word it would be local Spark.

    Raises:
        SettingsError: no spark-submit has said which one.
    """
    # Of the image's entry point, or of a spark-submit that has started this process.
    if not {"PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"} & os.environ.keys():
        raise SettingsError(
            "--cluster takes Spark's master from spark-submit, and none has started this: run it as a "
            "SparkApplication, or leave --cluster out"
        )


def _on_this_machine(settings: SessionSettings, cores: int) -> SparkConf:
    take_local_environment(os.environ)
    conf = SparkConf(loadDefaults=False).setAppName(settings.app_name).setMaster(f"local[{cores}]")
    local = local_conf(settings, local_class_path(), local_archive())
    conf.setAll(list({**local, **common_conf(settings), **settings.conf}.items()))
    _start_jvm(conf)
    return conf


def _on_cluster(settings: SessionSettings) -> SparkConf:
    require_submitted()
    # The launcher reads the file of properties that PYSPARK_SUBMIT_ARGS names, and the JVM knows them from then on.
    java = " ".join(java_options(image_archive()))
    _start_jvm(SparkConf(loadDefaults=False).set("spark.driver.defaultJavaOptions", java))
    conf = SparkConf(loadDefaults=True).setAppName(settings.app_name)
    given = dict(conf.getAll())
    return conf.setAll(list({**cluster_conf(java), **given, **common_conf(settings), **settings.conf}.items()))


def _keep_no_checksums(spark: SparkSession) -> None:
    """Have Hadoop keep no checksum beside each file on a folder: to make one it starts a process. Of a file that is
    written anew it removes the one that others have left."""
    jvm: Any = spark._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), spark._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)


def instances_of(spark: SparkSession) -> int:
    """Executors that a session on a cluster was started with."""
    # Two are what Spark asks for if nobody says.
    return int(spark.sparkContext.getConf().get("spark.executor.instances", "2"))


def executors_of(spark: SparkSession) -> int:
    """Executors that have registered; in local mode the driver is the one."""
    block_managers: int = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    return max(1, block_managers - 1)


def stop_session(spark: SparkSession) -> None:
    """Stop Spark; a JVM that died has stopped already, and the error that it died of comes first."""
    try:
        spark.stop()
    except (Py4JError, OSError):
        logger.warning("the JVM of Spark is gone")


def owns_jvm() -> bool:
    """Whether this program can start another JVM: it is our child, on a cluster too; but spark-submit, run by hand, is
    our parent."""
    gateway = SparkContext._gateway
    return gateway is None or gateway.proc is not None


def kill_jvm() -> None:
    """SIGKILL to the JVM, if there is one. Executors and Python workers end when they find it gone."""
    gateway = SparkContext._gateway
    if gateway is not None:
        os.kill(os.getppid() if gateway.proc is None else gateway.proc.pid, signal.SIGKILL)


def _start_jvm(conf: SparkConf) -> None:
    """Start the JVM in a session of its own: a SIGTERM or Ctrl-C for our process group asks us to end, and must not
    kill the JVM under the batch in hand. It ends with us, since it reads a pipe from us. What it prints goes to stderr:
    stdout is for what we were asked for, and its libraries print warnings there."""
    if SparkContext._gateway is None:
        apart = {"start_new_session": True, "stdout": 2}
        gateway = launch_gateway(conf, popen_kwargs=apart)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    keep_names()


def java_options(archive: Path) -> list[str]:
    """Of every JVM, driver or executor; packages and archive are at the same place in all containers of an image."""
    return [
        _LOGGING,
        # Not the machine's: in a Turkish one Hudi does not know its own states by their names (INFLIGHT with a dotted
        # I), and SQL's lower() makes another row of a record.
        "-Duser.language=en",
        "-Duser.country=US",
        # To measure objects, Hudi's JOL would start four more JVMs that try, in vain, to attach to this one.
        "-Djol.skipDynamicAttach=true",
        "-Djol.skipHotspotSAAttach=true",
        # Until Java 17.0.11 the helper that starts a process waits for ever if its JVM is killed, and has the JVM's
        # connections: a dead driver seems alive to its executors (JDK-8307990). This way there is no helper.
        "-Djdk.lang.Process.launchMechanism=VFORK",
        *archive_options(archive),
    ]


def local_conf(settings: SessionSettings, classes: str, archive: Path) -> dict[str, str]:
    """What only a JVM started from here needs; on a cluster the image and spark-submit see to it."""
    java = [*java_options(archive), "-Djava.net.preferIPv4Stack=true", "-XX:+UseParallelGC"]
    conf = {
        "spark.driver.extraClassPath": classes,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.hadoop.fs.file.impl": LOCAL_FILES,
        # Spark makes this folder, in that of whoever has started it, and nobody puts anything in.
        "spark.sql.warehouse.dir": gettempdir(),
        # Batches are small (256 MiB by default); 200 shuffle partitions would be 200 tiny tasks.
        "spark.sql.shuffle.partitions": "8",
        # One by one in quotes: there may be blanks in the path of the archive.
        "spark.driver.extraJavaOptions": " ".join(f'"{option}"' for option in java),
    }
    if settings.local_dir is not None:
        conf["spark.local.dir"] = str(settings.local_dir)
    return conf


def cluster_conf(java: str) -> dict[str, str]:
    """What a cluster starts with, unless spark-submit was told otherwise: executors that come and go under a job.

    Args:
        java: options of each JVM.
    """
    return {
        "spark.executor.defaultJavaOptions": java,
        # The operator decides on the number of executors; Spark looks at its tasks, and not at the stream.
        "spark.dynamicAllocation.enabled": "false",
        # An executor that is given up, or whose node is drained, ends its tasks and hands over the fetched batch.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        # Giving one up takes this long at least; 30 s by default.
        "spark.storage.decommission.replicationReattemptInterval": "2s",
        # A pod that is pending, and not wanted any more, is dropped after this; 60 s by default.
        "spark.dynamicAllocation.executorIdleTimeout": "10s",
        # A new executor is given tasks at once, although the fetched batch is with the others.
        "spark.locality.wait": "0s",
        # The table is checked, and the first batch planned, while executors start.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.kubernetes.allocation.batch.size": "10",
        # Executors find the driver by it. Stopped by a driver that begins anew in its pod, Spark would take it from the
        # next one; with the pod it goes in any case.
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        # By default the fourth executor that is lost in a driver's whole life ends it. One that cannot even start does
        # so about every 15 s.
        "spark.executor.failuresValidityInterval": "10min",
        "spark.executor.maxNumFailures": "40",
        # For a transform that groups, on many executors; adaptive execution joins those that turn out small.
        "spark.sql.shuffle.partitions": "64",
    }


def common_conf(settings: SessionSettings) -> dict[str, str]:
    """The configuration that holds wherever Spark runs."""
    conf = {
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": str(settings.ui).lower(),
        "spark.eventLog.enabled": "false",
        # Kept for the UI even where there is none; by default the last 1,000 of each, and 100,000 tasks.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "2000",
        "spark.sql.ui.retainedExecutions": "20",
        # The next batch is fetched while this one is written: neither may wait for all tasks of the other.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": _POOLS,
        "spark.sql.session.timeZone": "UTC",
        # By default `${x}` in a text of SQL is gone before it is parsed, and `${env:x}` is the driver's environment.
        "spark.sql.variable.substitute": "false",
        # The default fails the whole batch on one date that Spark 2 might have read in another way.
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.python.worker.reuse": "true",
        # Above it PySpark makes a file of what a task gets with its function, and never deletes it: of the ranges of
        # 5,000 shards a megabyte a batch.
        "spark.broadcast.UDFCompressionThreshold": "128m",
        "spark.python.daemon.module": "lakestream.spark.daemon",
        # Rows are wide structs of strings, dead after the batch: columnar cache without statistics or compression.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # Parquet's dates and times are written and read as they are. Spark's default fails at timestamps before 1900
        # and dates before 1582 in the files that Hudi writes, which do not say by whom they were written: one row
        # would end the compaction of its table.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.cleaner.periodicGC.interval": "10min",
    }
    if settings.executors is not None:
        conf["spark.executor.instances"] = str(settings.executors)
    if settings.hudi:
        conf |= HUDI_CONF
    if settings.s3 is not None:
        conf |= s3a_conf(settings.s3)
    return conf


def s3a_conf(s3: S3Settings) -> dict[str, str]:
    """S3A, also under the scheme `s3`, which Hadoop knows nothing of."""
    conf = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint.region": s3.region,
        "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        # Deleting parents' markers on every put is a bulk delete per file; readers of today do not mind them.
        "fs.s3a.directory.marker.retention": "keep",
        # No looks before a file is written, or a folder made, of whether it is there, or a file in the place of one of
        # its parents; nor at whether a folder is left empty when a file is deleted: two to three requests for each. As
        # they are requests of their own, they keep nobody from writing the same file at the same time. Hudi's files
        # have names of their own for each instant and task's attempt; what may be written once is up to our log.
        "fs.s3a.performance.flags": "create,delete,mkdir",
    }
    if s3.endpoint is not None:
        conf |= {
            "fs.s3a.endpoint": s3.endpoint,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": str(s3.endpoint.startswith("https:")).lower(),
        }
    return {f"spark.hadoop.{key}": value for key, value in conf.items()}
