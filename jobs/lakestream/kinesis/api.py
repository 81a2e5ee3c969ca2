"""An API of AWS that speaks JSON over HTTP: botocore's credentials and endpoints, our own connections, and the time by
the service's own clock, for it refuses a signature that is five minutes off that."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError
from botocore.session import Session

from lakestream.errors import SettingsError
from lakestream.kinesis.clock import ServiceClock
from lakestream.kinesis.connections import Connections, Response
from lakestream.kinesis.credentials import RenewedCredentials
from lakestream.kinesis.port import Monotonic
from lakestream.kinesis.proxies import proxy_of
from lakestream.kinesis.signing import Signer

if TYPE_CHECKING:
    from lakestream.kinesis.http2 import PushedAnswer


@dataclass(frozen=True, slots=True)
class Service:
    """Which API."""

    name: str
    """By which botocore knows its endpoints, and a signature is for it."""
    target: str
    """What stands before an operation in `x-amz-target`."""


class JsonApi:
    """Posts signed requests to one service of a Region. Thread-safe."""

    def __init__(
        self,
        service: Service,
        session: Session,
        credentials: RenewedCredentials,
        *,
        region: str,
        endpoint: str | None,
        connections: int,
        timeout: float,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        """Find the endpoint; nothing is sent.

        Args:
            service: whom to ask.
            session: by whose settings the endpoint and certificates are found.
            credentials: to sign with.
            region: of the service.
            endpoint: a URL instead of the service's in that Region; None: what AWS's SDKs would take.
            connections: at once, at most.
            timeout: seconds for connecting, and without a byte, after which a request counts as lost.
            monotonic: the clock of this machine.

        Raises:
            SettingsError: there is no endpoint for the region, or what is to be its proxy or its certificates is none.
        """
        self.url = _endpoint(service, session, region, endpoint)
        self.clock = ServiceClock()
        self._target = service.target
        self._credentials = credentials
        self._signer = Signer(service.name, region, urlsplit(self.url).netloc)
        self._monotonic = monotonic
        authorities = session.get_config_variable("ca_bundle")
        try:
            self._connections = Connections(
                self.url, most=connections, timeout=timeout, authorities=authorities, proxy=proxy_of(self.url)
            )
        except OSError as error:  # an ssl.SSLError is one
            raise SettingsError(f"AWS_CA_BUNDLE (or ca_bundle of the profile) {authorities}: {error}") from error

    def close(self) -> None:
        self._connections.close()

    def post(self, operation: str, body: bytes) -> Response:
        """An answer, whatever its status.

        Raises:
            OSError: there was none, or not a whole one.
            KinesisDeniedError, KinesisUnavailableError: as `RenewedCredentials.now`.
        """
        return self._connections.post(self._headers(operation, body), body)

    def pushed(self, operation: str, body: bytes) -> PushedAnswer:
        """An answer that goes on, by HTTP/2; raises as `post`."""
        return self._connections.pushed(self._headers(operation, body), body)

    def observe(self, answer: Response, received: float) -> None:
        """Take note of the time of an answer by the service itself: what stands before it has another clock.

        Args:
            answer: of `post`.
            received: time of `monotonic` at which it came.
        """
        date = answer.headers.get(b"date")
        if date is not None and (time := _date(date)) is not None:
            self.clock.observe(time, received)

    def _headers(self, operation: str, body: bytes) -> dict[str, str]:
        fixed = {"content-type": "application/x-amz-json-1.1", "x-amz-target": f"{self._target}.{operation}"}
        now = self.clock.now(self._monotonic()) or datetime.now(UTC)
        return self._signer.sign(self._credentials.now(), now, fixed, body)


def _endpoint(service: Service, session: Session, region: str, endpoint: str | None) -> str:
    try:
        # Creating a client resolves AWS_ENDPOINT_URL(_KINESIS), profiles and partitions.
        client = session.create_client(service.name, region_name=region, endpoint_url=endpoint)
        url = str(client.meta.endpoint_url).rstrip("/") + "/"
        client.close()
        parts = urlsplit(url)
        _ = parts.port  # which botocore takes as it is, and fails where it is none
        if parts.path != "/" or "@" in parts.netloc:
            raise ValueError("its URL has more than a host and a port")
    except (BotoCoreError, ValueError) as error:
        name = service.name.capitalize()
        raise SettingsError(f"no endpoint for {name} in region {region!r}: {error}") from error
    return url


@lru_cache(maxsize=4)  # it changes once a second
def _date(text: bytes) -> datetime | None:
    """The time of a `Date`; None: whoever sent it is not AWS."""
    try:
        time = parsedate_to_datetime(text.decode("latin-1"))
    except (ValueError, OverflowError):  # an hour of twenty digits
        return None
    return time if time.tzinfo is not None else None
