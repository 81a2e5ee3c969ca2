"""A driver: `lakestream ingest` as a process of its own, which can be killed at a step or an instant."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil
import pyspark

from lab.family import Family, is_killed, kill
from lakestream.control.files import read_progress
from lakestream.faults import CRASH_AT
from lakestream.spark.archive import archive_options, local_archive, local_class_path
from lakestream.spark.jars import jars_cache
from lakestream.spark.java import java_home
from lakestream.statuses import Exit
from quick_spark import quick

START_SECONDS = 240.0
"""For whatever a driver has to do once; a machine with two cores and eight busy processes starts one in 60 s."""
BURIAL_SECONDS = 120.0
TAIL_LINES = 40

_LAKESTREAM = Path(__file__).with_name("ingest.py")
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"

# A step that Spark's workers reach must kill the driver, whose id is known to itself alone.
_KILL_THE_DRIVER = ("sh", "-c", 'LAKESTREAM_CRASH_PID=$$ exec "$@"', "sh")


class DriverError(AssertionError):
    """A driver that did not do what it should; the message has the last lines of its log."""


class Victim(Enum):
    """What a SIGKILL hits."""

    DRIVER = "driver"
    """The Python process: its JVM finds the pipe broken."""
    ALL = "driver, JVM and workers"
    """As when a pod or a machine is lost."""
    JVM = "JVM"
    """As when it takes too much memory: the driver has to end by itself."""


@dataclass(frozen=True)
class Ingest:
    """How a writer is run."""

    document: Path
    writer: str
    environment: Mapping[str, str]
    folder: Path
    """For logs and progress."""
    options: tuple[str, ...] = ("--cores", "1")


class Driver:
    """One running driver."""

    def __init__(
        self, ingest: Ingest, name: str, *, crash_at: str | None = None, until_caught_up: bool = False
    ) -> None:
        self.name = name
        self.log = ingest.folder / f"{name}.log"
        self.progress = ingest.folder / f"{name}.progress.jsonl"
        environment = dict(ingest.environment)
        if crash_at is not None:
            environment[CRASH_AT] = crash_at
        command = [*_KILL_THE_DRIVER, sys.executable, str(_LAKESTREAM), "ingest", *ingest.options]
        command += ["--file", str(ingest.document), "--writer", ingest.writer, "--progress-file", str(self.progress)]
        if until_caught_up:
            command.append("--until-caught-up")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self._family = Family(self.process)

    def wait(self, seconds: float = START_SECONDS) -> int:
        """Exit status; a driver that does not end in time is an error."""
        self.until(lambda: False, "it to end", seconds, may_end=True)
        return self.process.wait()

    def until(
        self, condition: Callable[[], object], what: str, seconds: float = START_SECONDS, *, may_end: bool = False
    ) -> None:
        """Wait until something holds, or (if it may) until the driver has ended."""
        deadline = time.monotonic() + seconds
        looked = 0.0
        while not condition():
            now = time.monotonic()
            if now - looked > 0.5:
                self._family.meet()
                looked = now
            if self.process.poll() is not None:
                if may_end:
                    return
                raise DriverError(f"{self.name} ended with {self.process.returncode} instead of {what}\n{self.tail()}")
            if now > deadline:
                raise DriverError(f"{self.name}: waited {seconds:.0f} s for {what}\n{self.tail()}")
            time.sleep(0.01)

    def until_logged(self, text: str) -> None:
        self.until(lambda: text.encode() in self.log.read_bytes(), f"{text!r} in its log")

    def has_logged(self, *texts: str) -> bool:
        """Whether these are in its log, in this order."""
        places = [self.log.read_bytes().find(text.encode()) for text in texts]
        return -1 not in places and places == sorted(places)

    def until_committed(self, batches: int) -> None:
        self.until(lambda: len(read_progress(self.progress)) >= batches, f"{batches} committed batches")

    def kill(self, victim: Victim) -> None:
        """SIGKILL, now."""
        if victim is Victim.JVM:
            self.until(self._jvms, "its JVM")
        self._family.meet()
        if victim is Victim.JVM:
            kill(self._jvms())
            return
        self.process.kill()
        if victim is Victim.ALL:
            kill(self._family.members)

    def kill_executors(self) -> None:
        """SIGKILL to the JVMs of a cluster's executors, once there are some."""
        self.until(self._executors, "its executors")
        kill(self._executors())

    def require_refusal(self, status: Exit, *parts: str) -> None:
        """It ends with that status, and its last line says why, in one sentence for a person."""
        if (ended := self.wait()) != status:
            raise DriverError(f"{self.name} ended with {ended} instead of {status}\n{self.tail()}")
        log = self.log.read_text()
        last = log.splitlines()[-1]
        if "Traceback" in log or not last.startswith("lakestream: ") or any(part not in last for part in parts):
            raise DriverError(f"{self.name} does not say {parts} in its last line\n{self.tail()}")

    def tail(self) -> str:
        """The last lines of the log, for a person."""
        return tail_of(self.log)

    def require_no_jvm(self, seconds: float) -> None:
        """The JVM of an ended driver may not be left after so long, but for one that SIGKILL is on its way to: a busy
        machine needs longer. Python workers find it gone when they next ask."""
        left = self._family.outlast(seconds)
        if alive := [process for process in left if _is_jvm(process) and not is_killed(process)]:
            raise DriverError(f"{self.name} left {alive} running\n{self.tail()}")

    def bury(self) -> None:
        """Nothing of an ended driver may be left."""
        if alive := self._family.outlast(BURIAL_SECONDS):
            raise DriverError(f"{self.name} left {alive} running\n{self.tail()}")

    def end(self) -> None:
        """Kill whatever is left."""
        self._family.meet()
        kill(self._family.members)
        self.process.kill()
        self.process.wait()

    def _jvms(self) -> list[psutil.Process]:
        return [process for process in self._family.members if _is_jvm(process)]

    def _executors(self) -> list[psutil.Process]:
        return [process for process in self._jvms() if _EXECUTOR in _command(process)]


def tail_of(log: Path) -> str:
    """Its last lines, for a person; none if there is no log yet."""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:] if log.exists() else []
    return "\n".join([f"--- the last lines of {log}", *lines])


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _is_jvm(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


def child_environment(scratch: Path, **more: str) -> dict[str, str]:
    """The environment of drivers; whatever the shell says of AWS stays behind."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LAKESTREAM_"))}
    return own | {
        "LAKESTREAM_JARS": str(jars_cache()),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        **quick({"spark.local.dir": str(scratch)}),
        **more,
    }


def small_cluster(home: Path, executors: int = 2) -> dict[str, str]:
    """What spark-submit would say of a cluster on this machine.

    Args:
        home: made into Spark's home, where such a cluster keeps its logs.
        executors: processes of their own.
    """
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (home / part.name).symlink_to(part)
    classes, archive = local_class_path(), " ".join(archive_options(local_archive()))
    conf = {"spark.executor.memory": "512m"}
    for role in ("driver", "executor"):
        conf |= {f"spark.{role}.extraClassPath": classes, f"spark.{role}.extraJavaOptions": archive}
    options = (f"--conf {key}={value}" for key, value in conf.items() if value)
    return {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--master local-cluster[{executors},1,512] {' '.join(options)} pyspark-shell",
    }
