"""Kinesis over HTTP, with our own decoding of its answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from typing import Any, TypeVar

import botocore.session
import orjson
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from lakestream.errors import (
    ExpiredIteratorError,
    InvalidValueError,
    KinesisAnswerError,
    KinesisRejectedError,
    KinesisUnavailableError,
    SettingsError,
)
from lakestream.kinesis import answers
from lakestream.kinesis.api import JsonApi, Service
from lakestream.kinesis.busy import BusyShards
from lakestream.kinesis.connections import Response
from lakestream.kinesis.credentials import RenewedCredentials, credentials_of
from lakestream.kinesis.pages import arrival_time
from lakestream.kinesis.port import Consumer, IteratorStart, Monotonic, RecordPage, Shard, Sleep, StreamSummary
from lakestream.kinesis.retry import Backoff
from lakestream.kinesis.settings import KinesisSettings
from lakestream.kinesis.subscription import pushed_pages
from lakestream.model import Position

log = logging.getLogger(__name__)
T = TypeVar("T")

_KINESIS = Service("kinesis", "Kinesis_20131202")


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
        session, credentials = self._backoff.call(lambda: _credentials(settings))
        self._api = JsonApi(
            _KINESIS,
            session,
            RenewedCredentials(credentials, monotonic),
            region=settings.region,
            endpoint=settings.endpoint,
            connections=settings.connections,
            timeout=settings.timeout,
            monotonic=monotonic,
        )
        self._clock = self._api.clock
        self._monotonic = monotonic
        self._shards = BusyShards()

    def close(self) -> None:
        self._api.close()

    def now(self) -> datetime:
        now = self._clock.now(self._monotonic())
        if now is None:
            self.describe_stream_summary()
            now = self._clock.now(self._monotonic())
        if now is None:
            raise KinesisRejectedError(f"{self._api.url} sends no Date with its answers")
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
            with closing(self._api.pushed("SubscribeToShard", orjson.dumps(request))) as answer:
                if answer.status != 200:
                    raise answers.error(answer.status, b"".join(answer.parts()))
                for page in pushed_pages(answer.parts()):
                    if page.arrivals:
                        self._clock.observe_arrival(arrival_time(page.arrivals[-1]), self._monotonic())
                    yield page
        except OSError as error:
            raise KinesisUnavailableError(f"SubscribeToShard on {self._api.url}: {error}") from error

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
                self._api.observe(response, received)
            raise answers.error(response.status, response.body)
        try:
            found = decode(response.body)
        except orjson.JSONDecodeError as error:
            # Of what stands before Kinesis and may stand aside again, or an answer that was cut short.
            raise KinesisUnavailableError(
                f"{operation} on {self._api.url}: no JSON: {response.body[:200]!r}"
            ) from error
        except answers.NONSENSE as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise KinesisAnswerError.of(f"{operation} on {self._api.url}", what) from error
        self._api.observe(response, received)
        return found

    def _post(self, operation: str, body: bytes) -> Response:
        try:
            return self._api.post(operation, body)
        except OSError as error:
            raise KinesisUnavailableError(f"{operation} on {self._api.url}: {error}") from error


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


def _credentials(settings: KinesisSettings) -> tuple[Session, Credentials]:
    """Those that any AWS SDK would use here, and by whose settings they were found."""
    session = botocore.session.get_session()
    name = f"lakestream-{settings.stream}"
    return session, credentials_of(session, settings.role_arn, settings.region, name)
