"""A Kinesis for tests, in a thread of the test's process.

    with local_kinesis() as server:
        server.create_stream("orders", shards=4)
        client = server.client()                     # boto3
        server.clock.advance(3600)
        server.faults.drop("PutRecords", times=1)

`connect` gives the same handle on a server that runs elsewhere with `lakestream kinesis serve --testing`.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
import pybase64

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.control import CONTROL_PATH
from lakestream_localkinesis.core.account import AccountSettings
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.core.stream import StreamMode
from lakestream_localkinesis.errors import SettingsError, StartupError
from lakestream_localkinesis.faults import FaultKind, FaultPlan
from lakestream_localkinesis.server import Address, Server, new_event_loop
from lakestream_localkinesis.tls import CERTIFICATE, server_context

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

START_SECONDS = 60.0
CONTROL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as the server holds it."""

    shard_id: str
    sequence_number: str
    partition_key: str | None
    """None if the producer gave none: streams that distribute by themselves take that."""
    data: bytes
    arrival: datetime


class _ControlClient:
    def __init__(self, endpoint: str, certificate: Path | None) -> None:
        self._address = urlsplit(endpoint).netloc
        self._tls = ssl.create_default_context(cafile=certificate) if certificate else None

    def call(self, method: str, path: str, **fields: object) -> dict[str, Any]:
        connection = (
            http.client.HTTPSConnection(self._address, timeout=CONTROL_SECONDS, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(self._address, timeout=CONTROL_SECONDS)
        )
        try:
            connection.request(method, CONTROL_PATH + path, orjson.dumps(fields))
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise SettingsError(f"{method} {path} refused: {answer.decode(errors='replace')}")
        decoded: dict[str, Any] = orjson.loads(answer)
        return decoded


class ClockControl:
    """The server's clock: it follows the machine's at an offset, or stands still."""

    def __init__(self, control: _ControlClient) -> None:
        self._control = control

    def now(self) -> datetime:
        """The server's time."""
        return datetime.fromtimestamp(self._control.call("GET", "clock")["now_ms"] / 1000, UTC)

    def advance(self, by: float | timedelta) -> None:
        """Go forward at once, by seconds or a timedelta."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._drive("advance", round(seconds * 1000))

    def set(self, moment: datetime) -> None:
        """Go forward at once to a moment (with a time zone)."""
        self._drive("set", round(moment.timestamp() * 1000))

    def freeze(self) -> None:
        """Stand still; `advance` still moves."""
        self._drive("freeze")

    def resume(self) -> None:
        """Run on from here."""
        self._drive("resume")

    def _drive(self, action: str, milliseconds: int = 0) -> None:
        self._control.call("POST", "clock", action=action, ms=milliseconds)


class FaultControl:
    """The server's faults. Without operation names, a fault befalls every operation that it applies to.

    `times`: how many requests are befallen, None until `clear`. `probability`: the share of requests.
    """

    def __init__(self, control: _ControlClient) -> None:
        self._control = control

    def latency(self, seconds: float, *operations: str, times: int | None = None, probability: float = 1.0) -> None:
        """Answers come late; the requests take effect at once."""
        self._add(FaultKind.LATENCY, operations, times, probability, latency_ms=round(seconds * 1000))

    def internal_failure(self, *operations: str, times: int | None = None, probability: float = 1.0) -> None:
        """500 InternalFailure, without effect."""
        self._add(FaultKind.INTERNAL_FAILURE, operations, times, probability)

    def throttle(self, *operations: str, times: int | None = None, probability: float = 1.0) -> None:
        """ProvisionedThroughputExceededException; in PutRecords of single records, which `times` then counts."""
        self._add(FaultKind.THROTTLE, operations, times, probability)

    def drop(self, *operations: str, times: int | None = None, probability: float = 1.0) -> None:
        """The connection closes after the request took effect: the ambiguous PutRecords."""
        self._add(FaultKind.DROP, operations, times, probability)

    def drop_before(self, *operations: str, times: int | None = None, probability: float = 1.0) -> None:
        """The connection closes before the request took effect."""
        self._add(FaultKind.DROP_BEFORE, operations, times, probability)

    def empty_pages(self, times: int | None = None, probability: float = 1.0) -> None:
        """GetRecords answers with MillisBehindLatest above 0, no records, and an iterator that stays."""
        self._add(FaultKind.EMPTY_PAGE, ("GetRecords",), times, probability)

    def stale(self, seconds: float, times: int | None = None, probability: float = 1.0) -> None:
        """ListShards answers with the shards as they were so long ago by the server's clock; all else stays true."""
        self._add(FaultKind.STALE, ("ListShards",), times, probability, stale_ms=round(seconds * 1000))

    def clear(self) -> None:
        """Switch all faults off."""
        self._control.call("DELETE", "faults")

    def _add(
        self,
        kind: FaultKind,
        operations: tuple[str, ...],
        times: int | None,
        probability: float,
        **more: int,
    ) -> None:
        fields = {"kind": kind, "operations": operations, "times": times, "probability": probability}
        self._control.call("POST", "faults", **fields, **more)


class LocalKinesis:
    """A running server that tests control."""

    def __init__(self, endpoint: str, region: str, certificate: Path | None = None) -> None:
        self.endpoint = endpoint
        """For example http://127.0.0.1:40123"""
        self.region = region
        self.certificate = certificate
        """What clients trust, if the endpoint is one of TLS."""
        self._control = _ControlClient(endpoint, certificate)
        self.clock = ClockControl(self._control)
        self.faults = FaultControl(self._control)

    def create_stream(self, name: str, shards: int = 1, *, on_demand: bool = False) -> None:
        """Create a stream; CreateStream's own rate (5/s) does not apply."""
        mode = StreamMode.ON_DEMAND if on_demand else StreamMode.PROVISIONED
        self._control.call("POST", "streams", name=name, shards=shards, mode=mode)

    def records(self, stream: str) -> list[StoredRecord]:
        """All that a stream retains, shard by shard in order: the truth to compare with. No rate applies."""
        return [
            StoredRecord(
                shard_id=record["ShardId"],
                sequence_number=record["SequenceNumber"],
                partition_key=record.get("PartitionKey"),
                data=pybase64.b64decode(record["Data"]),
                arrival=datetime.fromtimestamp(record["ApproximateArrivalTimestamp"], UTC),
            )
            for record in self._control.call("GET", f"records/{stream}")["records"]
        ]

    def environment(self) -> dict[str, str]:
        """What an AWS SDK in another process needs to find this server."""
        environment = {
            "AWS_ENDPOINT_URL_KINESIS": self.endpoint,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
        }
        return {**environment, "AWS_CA_BUNDLE": str(self.certificate)} if self.certificate else environment

    def client(self, **config: Any) -> KinesisClient:
        """A boto3 client; `config` goes to botocore's Config. Without it nothing is retried: tests see each answer."""
        import boto3
        from botocore.config import Config

        config.setdefault("retries", {"total_max_attempts": 1})
        return boto3.client(
            "kinesis",
            endpoint_url=self.endpoint,
            region_name=self.region,
            verify=str(self.certificate) if self.certificate else None,
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=Config(**config),
        )


def connect(endpoint: str, region: str = "us-east-1", certificate: Path | None = None) -> LocalKinesis:
    """The handle on a server that was started elsewhere with --testing; with --tls, its tls.crt is the certificate."""
    return LocalKinesis(endpoint, region, certificate)


@contextmanager
def local_kinesis(
    *,
    limits: Limits | None = None,
    region: str = "us-east-1",
    transition: float = 0.0,
    seed: int = 0,
    tls: Path | None = None,
    data: Path | None = None,
) -> Iterator[LocalKinesis]:
    """Run a server on a free loopback port until the block ends.

    `limits`: Kinesis's own unless given, `Limits.none()` for none. `transition`: seconds that a stream stays
    CREATING, UPDATING or DELETING. `seed`: of the faults' probabilities. `tls`: a folder with tls.crt and tls.key, made
    if they are not there. `data`: a folder that the next server goes on from.
    """
    settings = AccountSettings(region=region, limits=limits or Limits(), transition_ms=round(transition * 1000))
    application = Application.open(settings, data, FaultPlan(seed))
    thread = _ServerThread(application, server_context(tls, Address().host) if tls else None)
    address = thread.start()
    where = f"{address.host}:{address.port}"
    try:
        yield (
            LocalKinesis(f"https://{where}", region, tls / CERTIFICATE)
            if tls
            else LocalKinesis(f"http://{where}", region)
        )
    finally:
        thread.stop()
        application.close()


class _ServerThread:
    def __init__(self, application: Application, tls: ssl.SSLContext | None) -> None:
        self._server = Server(application, Address(port=0), tls)
        self._loop = new_event_loop()
        self._ready = threading.Event()
        self._address: Address | None = None
        self._thread = threading.Thread(target=self._run, name="local-kinesis", daemon=True)

    def start(self) -> Address:
        self._thread.start()
        self._ready.wait(START_SECONDS)
        if self._address is None:
            raise StartupError(f"the server did not start within {START_SECONDS} s")
        return self._address

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(START_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS)

    def _run(self) -> None:
        try:
            self._address = self._loop.run_until_complete(self._server.start())
        finally:
            self._ready.set()
        self._loop.run_forever()
        self._loop.close()
