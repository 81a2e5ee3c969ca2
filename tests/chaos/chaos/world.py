"""All that a scenario has: a Kinesis, a lake, a producer, and the drivers that were started."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import yaml

from chaos.asked import Asked
from chaos.clock import WallClock
from chaos.driver import Driver, Launch
from chaos.events import DELETES, KEY, ORDERING, PARTITION, SCHEMA
from chaos.frames import Frames
from chaos.ledger import Stored
from chaos.poison import FAILS
from chaos.producer import Producer, hash_keys_of
from chaos.readings import Readings
from chaos.registry import Registry, registry
from chaos.resharding import Resharding
from chaos.s3 import AWAITED, Effect, S3Faults, S3Proxy, S3Server
from chaos.setting import Place, Setting, Sink
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

STREAM = "things"
WRITER = "things"
_INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
_TRANSFORM = f"SELECT events.* FROM {{}} WHERE note IS NULL OR note <> '{FAILS}' OR raise_error(note) IS NULL"
_BY_ROW = "events"
_JOINED = f"{_BY_ROW} JOIN (SELECT DISTINCT _shard_id AS shard FROM events) ON _shard_id = shard"
_SMALL_PARTS = "-Dspark.hadoop.fs.s3a.multipart.size=5M -Dspark.hadoop.fs.s3a.multipart.threshold=5M"


@dataclass(frozen=True)
class Tools:
    """What all scenarios of a run share."""

    jars: Path
    java_home: Path
    clock: Path | None


class World:
    """One scenario's part of the world. Faults change it; nothing else knows how."""

    def __init__(
        self,
        setting: Setting,
        folder: Path,
        tools: Tools,
        kinesis: LocalKinesis,
        s3: tuple[S3Server, S3Proxy] | None,
        registry: Registry | None,
        chance: Random,
    ) -> None:
        self.setting = setting
        self.folder = folder
        self.kinesis = kinesis
        self.client = kinesis.client()
        self.proxy = s3[1] if s3 else None
        self.registry = registry
        self.drivers: list[Driver] = []
        self.counts: Counter[str] = Counter()
        """What was done, by kind."""
        self.faults: list[str] = []
        """What must not have happened, but for what the audit finds."""
        self.clock_offset = 0.0
        """Seconds by which the clocks of drivers that are started from now on are wrong."""
        self.clock_ahead = 0.0
        """By how much the one was wrong that was furthest ahead: a driver that is behind it may refuse to write."""
        self._hash_keys: dict[str, range] = {}
        self.trimmed: list[Stored] = []
        """What the stream had, and has no more."""
        self.begins = kinesis.clock.now()
        """What the stream had before this it lost before the first batch."""
        self.asked = Asked(self)
        """What people have asked of the writer."""
        self.readings = Readings(self)
        """What they have read of its table."""
        self.stressed = False
        """Whether something is switched on that a driver may end of."""
        self._server = s3[0] if s3 else None
        self._tools = tools
        self._began = time.monotonic()
        self.created_at = kinesis.clock.now()
        self._clocks: dict[str, WallClock] = {}
        self._resharding: Resharding | None = None
        self._story = (folder / "story.txt").open("a", buffering=1)
        self._telling = threading.Lock()
        self.root = str(folder / "lake") if s3 is None else f"s3a://{S3Server.bucket}"
        self.document = _document(setting, self.root, kinesis.endpoint)
        self._create_stream()
        if setting.pushed:
            self.document["spec"]["writers"][0]["consumerArn"] = self._register()
        self.producer = self._producer(chance)

    @property
    def driver(self) -> Driver | None:
        """The newest one, if it lives."""
        return self.drivers[-1] if self.drivers and self.drivers[-1].status is None else None

    def tell(self, text: str) -> None:
        """Say what happens."""
        with self._telling:
            self._story.write(f"{time.monotonic() - self._began:8.1f} s  {text}\n")

    def start(self, *, crash_at: str | None = None, drain: bool = False) -> Driver:
        """Start a driver with the document as it is now.

        What it finds open it undoes first, for which it needs the right to delete.
        """
        self.let_delete()
        number = len(self.drivers) + 1
        path = self.folder / f"driver-{number:02d}.yaml"
        path.write_text(yaml.safe_dump(self.document, sort_keys=False))
        clock = WallClock(self.folder / f"driver-{number:02d}.clock", self._tools.clock, self.clock_offset)
        options = ("--cluster",) if self.setting.cluster else ("--cores", "1")
        launch = Launch(path, WRITER, {**self.environment(), **clock.environment()}, options, self.folder)
        driver = Driver(launch, number, crash_at=crash_at, drain=drain)
        self.clock_ahead = max(self.clock_ahead, self.clock_offset)
        driver.hurt = crash_at is not None or self.clock_offset < self.clock_ahead
        self._clocks[driver.name] = clock
        self.drivers.append(driver)
        self.counts["starts"] += 1
        self.tell(f"{driver.name} starts{f', to die at {crash_at}' if crash_at else ''}")
        return driver

    def let_delete(self) -> None:
        """Give back the right to delete, where somebody took it, to who has been denied it some times, and waits."""
        if self.proxy is not None:
            self.proxy.faults.bound(Effect.FORBID, AWAITED)

    def set_clock(self, driver: Driver, seconds: float) -> None:
        """Set the clock of a driver that runs, to so many seconds before the machine's."""
        self.clock_ahead = max(self.clock_ahead, seconds)
        driver.hurt = True
        self._clocks[driver.name].set(seconds)

    def reshard(self, chance: Random, seconds: float) -> None:
        """Split or merge shards every so many seconds, until it is calm."""
        if self._resharding is None:
            self._resharding = Resharding(self.kinesis.client(), STREAM, chance, seconds)

    def keep_for(self, hours: int) -> None:
        """Change the stream's retention; Kinesis has an operation for each direction."""
        now = self.client.describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"]["RetentionPeriodHours"]
        if hours > now:
            self.client.increase_stream_retention_period(StreamName=STREAM, RetentionPeriodHours=hours)
        elif hours < now:
            self.client.decrease_stream_retention_period(StreamName=STREAM, RetentionPeriodHours=hours)

    def kinesis_goes_on(self, seconds: float) -> None:
        """Set the stream's clock forward. Between two puts, for what is on its way would be too late."""
        with self.producer.still():
            self.kinesis.clock.advance(seconds)

    def trim(self) -> None:
        """Let all that the stream has now grow older than it keeps it."""
        with self.producer.still():
            kept = self.client.describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"]
            self.hash_keys()
            self.trimmed += self.stored()
            if not self.batches():
                self.begins = self.kinesis.clock.now()
            self.kinesis.clock.advance(3600 * (kept["RetentionPeriodHours"] + 1))

    def calm(self) -> None:
        """End all that was switched on, and let what was held take effect."""
        self.kinesis.faults.clear()
        if self._resharding is not None:
            self._resharding.stop()
            self.counts["reshards"] += self._resharding.done
            self._resharding = None
        if self.proxy is not None:
            self.proxy.faults.clear()
            for landed in self.proxy.release():
                self.tell(f"landed late: {landed}")
        if self.registry is not None:
            self.registry.calm()
        self.stressed = False

    def stored(self) -> Iterator[Stored]:
        """What the stream has."""
        for record in self.kinesis.records(STREAM):
            number = int(record.sequence_number)
            yield Stored(record.shard_id, number, record.data, record.arrival, record.partition_key)

    def hash_keys(self) -> dict[str, range]:
        """Of each shard that there is or was; none if the stream places records itself."""
        if not self.setting.auto:
            self._hash_keys |= hash_keys_of(self.client, STREAM)
        return self._hash_keys

    def lake(self) -> Path:
        """The folder of the lake; of one on S3, a copy."""
        lake = self.folder / "lake"
        if self._server is not None:
            self._server.copy_to(lake)
        return lake

    def end(self) -> None:
        """Kill what is left."""
        for driver in self.drivers:
            driver.end()
        self.calm()
        self._story.close()

    def _producer(self, chance: Random) -> Producer:
        data, encodings = Random(chance.randrange(2**32)), Random(chance.randrange(2**32))
        frames = Frames(encodings, self.registry.register) if self.registry else None
        return Producer(self.client, STREAM, data, self.kinesis.clock.now, self.batches, self.setting, frames)

    def _create_stream(self) -> None:
        if not self.setting.auto:
            self.kinesis.create_stream(STREAM, shards=self.setting.shards)
            return
        self.client.create_stream(
            StreamName=STREAM,
            StreamModeDetails={"StreamMode": "ON_DEMAND"},
            RecordDistributionStrategy="AUTO",
        )
        self.client.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})

    def _register(self) -> str:
        """The ARN of a new consumer."""
        stream = self.client.describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"]
        made = self.client.register_stream_consumer(StreamARN=stream["StreamARN"], ConsumerName=WRITER)
        return made["Consumer"]["ConsumerARN"]

    def batches(self) -> int:
        """That all drivers together have committed."""
        return sum(driver.batches for driver in self.drivers)

    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SPARK_"))}
        scratch = f"-Dspark.local.dir={self.folder / 'scratch'}"
        own |= {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            # As by cron: "ä" and "ö" are two partitions all the same.
            "LC_ALL": "C",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            # These JVMs live for seconds: to compile what they run only takes time from them.
            "JAVA_TOOL_OPTIONS": f"-XX:TieredStopAtLevel=1 {_INTERPRETED} {_SMALL_PARTS} {scratch}",
        }
        if self.proxy is not None:
            own["AWS_ENDPOINT_URL_S3"] = self.proxy.url
        if self.registry is not None:
            own["AWS_ENDPOINT_URL_GLUE"] = self.registry.url
        return own | (self._cluster() if self.setting.cluster else {})

    def _cluster(self) -> dict[str, str]:
        """What spark-submit would say of a cluster of two executors on this machine."""
        import pyspark

        home = self.folder / "spark"
        if not home.exists():
            home.mkdir()
            for part in Path(pyspark.__file__).parent.iterdir():
                (home / part.name).symlink_to(part)
        classes = os.pathsep.join(str(jar) for jar in sorted(self._tools.jars.glob("*.jar")))
        conf = {"executor.memory": "512m", "driver.extraClassPath": classes, "executor.extraClassPath": classes}
        options = " ".join(f"--conf spark.{key}={value}" for key, value in conf.items())
        master = "--master local-cluster[2,1,512]"
        return {
            "JAVA_HOME": str(self._tools.java_home),
            # Of the image: on a cluster the environment is taken as it is.
            "LC_ALL": "C.UTF-8",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"{master} {options} pyspark-shell",
        }


@contextmanager
def world(setting: Setting, folder: Path, tools: Tools, chance: Random) -> Iterator[World]:
    """A world for a scenario; nothing of it is left running afterwards."""
    with ExitStack() as stack:
        kinesis = stack.enter_context(local_kinesis(seed=chance.randrange(2**32)))
        s3 = None
        if setting.place is Place.S3:
            server = stack.enter_context(S3Server())
            faults = S3Faults(Random(chance.randrange(2**32)))
            s3 = server, stack.enter_context(S3Proxy(server.url, faults))
        schemas = stack.enter_context(registry()) if setting.avro else None
        made = World(setting, folder, tools, kinesis, s3, schemas, chance)
        stack.callback(made.end)
        yield made


def _document(setting: Setting, root: str, endpoint: str) -> dict[str, Any]:
    return {
        "apiVersion": "lakestream.dev/v1alpha1",
        "kind": "LakeStream",
        "metadata": {"name": STREAM},
        "spec": {
            "source": {"kinesis": {"stream": STREAM, "region": "us-east-1", "endpoint": endpoint}},
            "filter": [{"path": "op", "values": ["c", "u", "d"]}],
            **({"format": "jsonl"} if setting.packed else {"format": "avro"} if setting.avro else {}),
            "schema": SCHEMA,
            **({"transform": _TRANSFORM.format(_JOINED if setting.joins else _BY_ROW)} if setting.sql else {}),
            "trigger": {"interval": "200ms", "maxRecordsPerBatch": 4 * setting.burst * setting.volume},
            "writers": [{"name": WRITER, **_output(setting, f"{root}/table")}],
            "checkpoint": f"{root}/checkpoint",
            "resources": {"driver": {"cores": 1, "memory": "1g"}},
        },
    }


def _output(setting: Setting, path: str) -> dict[str, Any]:
    sink = setting.sink
    if not sink.is_hudi:
        return {"json": {"path": path, "partitionBy": [PARTITION]}}
    hudi: dict[str, Any] = {
        "path": path,
        "tableType": "MERGE_ON_READ" if sink.is_merge_on_read else "COPY_ON_WRITE",
        "tableVersion": setting.version,
        "recordKey": list(KEY),
        "partitionBy": [PARTITION],
        "operation": "insert",
        "compaction": {"everyCommits": 4},
        "cleaning": {"retainHours": 1},
    }
    if sink is Sink.MOR_INSERT:
        hudi["clustering"] = {}
    if sink.is_keyed:
        hudi |= {"operation": "upsert", "orderingField": ORDERING, "deleteWhen": DELETES}
        hudi |= {"index": {"type": setting.index, **({"buckets": 2} if setting.index == "bucket" else {})}}
    return {"hudi": hudi}
