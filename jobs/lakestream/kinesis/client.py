"""Kinesis over HTTP: botocore's credentials and endpoints, our own connections and decoding."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import botocore.session
import orjson
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError

from lakestream.errors import (
    ExpiredIteratorError,
    InvalidValueError,
    KinesisAnswerError,
    KinesisRejectedError,
    KinesisUnavailableError,
    SettingsError,
)
from lakestream.kinesis import answers
from lakestream.kinesis.busy import BusyShards
from lakestream.kinesis.clock import KinesisClock
from lakestream.kinesis.connections import Connections, Response
from lakestream.kinesis.credentials import RenewedCredentials, assumed, find_credentials
from lakestream.kinesis.pages import arrival_time
from lakestream.kinesis.port import Consumer, IteratorStart, Monotonic, RecordPage, Shard, Sleep, StreamSummary
from lakestream.kinesis.proxies import proxy_of
from lakestream.kinesis.retry import Backoff
from lakestream.kinesis.settings import KinesisSettings
from lakestream.kinesis.signing import Signer
from lakestream.kinesis.subscription import pushed_pages
from lakestream.model import Position

if TYPE_CHECKING:
    from lakestream.kinesis.http2 import PushedAnswer

log = logging.getLogger(__name__)
T = TypeVar("T")


class HttpKinesisClient:
    """Implements KinesisClient against AWS or anything that speaks its JSON 1.1 protocol."""

    def __init__(
        self, settings: KinesisSettings, *, sleep: Sleep = time.sleep, monotonic: Monotonic = time.monotonic
    ) -> None:
        """Find the endpoint and credentials.

        Raises:
            SettingsError: there are no credentials, no endpoint for the region, or what is to be its proxy is none.
            KinesisDeniedError, KinesisUnavailableError: nobody gives any, or not within `patience`.
        """
        arn = _arn(settings)
        self._of_stream = {"StreamName": settings.stream} if arn is None else {"StreamARN": arn}
        self._of_page = {} if arn is None else {"StreamARN": arn}
        """An iterator tells the stream, but not whose it is."""
        self._backoff = Backoff(settings.patience, sleep, monotonic)
        self._url, credentials, authorities = self._backoff.call(lambda: _resolve(settings))
        self._credentials = RenewedCredentials(credentials, monotonic)
        self._signer = Signer(settings.region, urlsplit(self._url).netloc)
        try:
            self._connections = Connections(
                self._url,
                most=settings.connections,
                timeout=settings.timeout,
                authorities=authorities,
                proxy=proxy_of(self._url),
            )
        except OSError as error:  # an ssl.SSLError is one
            raise SettingsError(f"AWS_CA_BUNDLE (or ca_bundle of the profile) {authorities}: {error}") from error
        self._monotonic = monotonic
        self._clock = KinesisClock()
        self._shards = BusyShards()

    def close(self) -> None:
        self._connections.close()

    def now(self) -> datetime:
        now = self._clock.now(self._monotonic())
        if now is None:
            self.describe_stream_summary()
            now = self._clock.now(self._monotonic())
        if now is None:
            raise KinesisRejectedError(f"{self._url} sends no Date with its answers")
        return now

    def describe_stream_summary(self) -> StreamSummary:
        return self._call("DescribeStreamSummary", self._of_stream, answers.stream_summary)

    def list_shards(self) -> tuple[Shard, ...]:
        try:
            return self._listed()
        except ExpiredIteratorError:  # this machine, or its network, stood still between two pages
            return self._listed()

    def _listed(self) -> tuple[Shard, ...]:
        shards, token = self._call("ListShards", self._of_stream, answers.shard_page)
        while token is not None:
            page, token = self._call("ListShards", {"NextToken": token}, answers.shard_page)
            shards += page
        return tuple(shards)

    def get_shard_iterator(self, shard_id: str, start: IteratorStart) -> str:
        request = {**self._of_stream, "ShardId": shard_id, **_iterator_fields(start)}
        iterator = self._call("GetShardIterator", request, answers.shard_iterator)
        self._shards.of(iterator, shard_id)
        return iterator

    def get_records(self, iterator: str, limit: int) -> RecordPage:
        began = 0.0
        request = {"ShardIterator": iterator, "Limit": limit, **self._of_page}

        def ask() -> RecordPage:
            nonlocal began
            began = self._monotonic()
            return self._once("GetRecords", request, answers.record_page)

        page = self._backoff.call(ask, self._shards.free_at(iterator))
        self._shards.gave(iterator, page, began)
        if page.arrivals:
            self._clock.observe_arrival(arrival_time(page.arrivals[-1]), self._monotonic())
        return page

    def describe_consumer(self, arn: str) -> Consumer:
        """A consumer of enhanced fan-out. Raises StreamNotFoundError if there is none."""
        return self._call("DescribeStreamConsumer", {"ConsumerARN": arn}, answers.consumer)

    def subscribe(self, consumer_arn: str, shard_id: str, start: Position) -> Iterator[RecordPage]:
        """What is pushed to a consumer, as `Subscribe` has it. Within five seconds of its last subscription to a shard
        it is refused another one; later it loses the last one to it."""
        fields = _iterator_fields(start)
        position = {"Type": fields["ShardIteratorType"], "SequenceNumber": fields["StartingSequenceNumber"]}
        request = {"ConsumerARN": consumer_arn, "ShardId": shard_id, "StartingPosition": position}
        try:
            with closing(self._pushed("SubscribeToShard", orjson.dumps(request))) as answer:
                if answer.status != 200:
                    raise answers.error(answer.status, b"".join(answer.parts()))
                for page in pushed_pages(answer.parts()):
                    if page.arrivals:
                        self._clock.observe_arrival(arrival_time(page.arrivals[-1]), self._monotonic())
                    yield page
        except OSError as error:
            raise KinesisUnavailableError(f"SubscribeToShard on {self._url}: {error}") from error

    def update_shard_count(self, shards: int) -> None:
        """Have the stream resharded evenly. Asked once only: what it is refused for lasts, as do its ten times a day.

        Raises:
            ThrottledError: one of Kinesis's limits, which are of shards, or of times a day.
            KinesisRejectedError: the stream is on-demand, or the right is missing.
            KinesisUnavailableError: nobody knows whether it was taken, or the stream is being updated.
        """
        request = {**self._of_stream, "TargetShardCount": shards, "ScalingType": "UNIFORM_SCALING"}
        self._once("UpdateShardCount", request, orjson.loads)

    def _call(self, operation: str, request: dict[str, Any], decode: Callable[[bytes], T]) -> T:
        return self._backoff.call(lambda: self._once(operation, request, decode))

    def _once(self, operation: str, request: dict[str, Any], decode: Callable[[bytes], T]) -> T:
        response = self._post(operation, orjson.dumps(request))
        received = self._monotonic()
        if response.status != 200:
            if answers.said(response.body)[0]:
                self._observe(response, received)
            raise answers.error(response.status, response.body)
        try:
            found = decode(response.body)
        except orjson.JSONDecodeError as error:
            # Of what stands before Kinesis and may stand aside again, or an answer that was cut short.
            raise KinesisUnavailableError(f"{operation} on {self._url}: no JSON: {response.body[:200]!r}") from error
        except answers.NONSENSE as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise KinesisAnswerError.of(f"{operation} on {self._url}", what) from error
        self._observe(response, received)
        return found

    def _post(self, operation: str, body: bytes) -> Response:
        try:
            return self._connections.post(self._headers(operation, body), body)
        except OSError as error:
            raise KinesisUnavailableError(f"{operation} on {self._url}: {error}") from error

    def _pushed(self, operation: str, body: bytes) -> PushedAnswer:
        return self._connections.pushed(self._headers(operation, body), body)

    def _headers(self, operation: str, body: bytes) -> dict[str, str]:
        fixed = {"content-type": "application/x-amz-json-1.1", "x-amz-target": f"Kinesis_20131202.{operation}"}
        # Kinesis refuses a time that is five minutes off its own, which it tells with that.
        now = self._clock.now(self._monotonic()) or datetime.now(UTC)
        return self._signer.sign(self._credentials.now(), now, fixed, body)

    def _observe(self, answer: Response, received: float) -> None:
        """Of Kinesis's own answers alone: the `Date` of a page by what stands before it is that of another clock."""
        date = answer.headers.get(b"date")
        if date is not None and (time := _date(date)) is not None:
            self._clock.observe(time, received)


@lru_cache(maxsize=4)  # it changes once a second
def _date(text: bytes) -> datetime | None:
    """The time of a `Date`; None: whoever sent it is not Kinesis."""
    try:
        time = parsedate_to_datetime(text.decode("latin-1"))
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _iterator_fields(start: IteratorStart) -> dict[str, Any]:
    match start:
        case None:
            return {"ShardIteratorType": "TRIM_HORIZON"}
        case datetime():
            return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": _seconds(start)}
        case Position(sequence, after):
            kind = "AFTER_SEQUENCE_NUMBER" if after else "AT_SEQUENCE_NUMBER"
            return {"ShardIteratorType": kind, "StartingSequenceNumber": str(sequence)}
    raise InvalidValueError(f"not a place to start at: {start!r}")


def _seconds(time: datetime) -> float:
    """Seconds since 1970 with the three decimals that Kinesis keeps."""
    return round(time.timestamp(), 3)


def _arn(settings: KinesisSettings) -> str | None:
    """Of a stream of another account, which is not to be had by its name."""
    if settings.account is None:
        return None
    try:
        partition = botocore.session.get_session().get_partition_for_region(settings.region)
    except BotoCoreError as error:
        raise SettingsError(f"no ARN of a stream in region {settings.region!r}: {error}") from error
    return f"arn:{partition}:kinesis:{settings.region}:{settings.account}:stream/{settings.stream}"


def _resolve(settings: KinesisSettings) -> tuple[str, Credentials, str | None]:
    """The endpoint, the credentials and the certificates that any AWS SDK would use here."""
    session = botocore.session.get_session()
    credentials = find_credentials(session)
    if settings.role_arn is not None:
        name = f"lakestream-{settings.stream}"
        credentials = assumed(session, credentials, settings.role_arn, settings.region, name)
    try:
        # Creating a client resolves AWS_ENDPOINT_URL(_KINESIS), profiles and partitions; nothing is sent.
        client = session.create_client("kinesis", region_name=settings.region, endpoint_url=settings.endpoint)
        url = str(client.meta.endpoint_url).rstrip("/") + "/"
        client.close()
        _ = urlsplit(url).port  # which botocore takes as it is, and fails where it is none
    except (BotoCoreError, ValueError) as error:
        raise SettingsError(f"no endpoint for Kinesis in region {settings.region!r}: {error}") from error
    return url, credentials, session.get_config_variable("ca_bundle")
