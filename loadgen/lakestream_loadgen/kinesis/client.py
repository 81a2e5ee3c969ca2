"""The one call that a producer makes, over gevent sockets."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import gevent.socket
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import get_session
from botocore.utils import get_environ_proxies
from geventhttpclient import HTTPClient
from geventhttpclient.response import HTTPParseError

from lakestream_loadgen.credentials import RenewedCredentials, checked_region, find_credentials
from lakestream_loadgen.errors import CredentialsError, NotWrittenError, OutcomeUnknownError, SettingsError
from lakestream_loadgen.kinesis.wire import call_error


class PutRecordsClient(Protocol):
    """Sends one PutRecords request."""

    def put_records(self, body: bytes) -> bytes:
        """Send the request body; returns the body of the answer with status 200.

        Raises:
            PutRecordsError: no answer per record; its type says whether the records may have been written.
        """

    def close(self) -> None: ...


@dataclass(frozen=True)
class KinesisEndpoint:
    """Where requests go and who signs them."""

    url: str
    region: str
    credentials: Credentials
    authorities: str | None = None
    """File of the certificates that are trusted; None: the usual ones."""

    @classmethod
    def from_environment(cls) -> KinesisEndpoint:
        """As botocore finds it: AWS_ENDPOINT_URL_KINESIS, AWS_DEFAULT_REGION, AWS_CA_BUNDLE, profiles, roles.

        AWS_REGION counts too, and first, as in the other SDKs; botocore does not know it.

        Raises:
            SettingsError: no region or no credentials, no certificates where they should be, or a proxy before it.
        """
        session = get_session()
        credentials = find_credentials(session)
        try:
            client = session.create_client("kinesis", region_name=os.environ.get("AWS_REGION"))
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(f"Kinesis endpoint: {error} (set AWS_REGION?)") from error
        authorities: str | None = session.get_config_variable("ca_bundle")
        try:
            ssl.create_default_context(cafile=authorities)
        except OSError as error:  # an ssl.SSLError is one
            raise SettingsError(f"AWS_CA_BUNDLE (or ca_bundle of the profile) {authorities}: {error}") from error
        _require_no_proxy(client.meta.endpoint_url)
        return cls(client.meta.endpoint_url, checked_region(client.meta.region_name), credentials, authorities)


def _require_no_proxy(url: str) -> None:
    """Each request would go around it: to nowhere, or where it must not go."""
    parts = urlsplit(url)
    if get_environ_proxies(url).get(parts.scheme):
        raise SettingsError(
            f"{parts.scheme.upper()}_PROXY is set, and a load sends its records through no proxy: unset it, or add "
            f"{parts.hostname} to NO_PROXY if it can be reached without"
        )


class HttpKinesisClient:
    """Keep-alive connections, as many as calls may be under way.

    geventhttpclient rather than urllib3: 220 against 500 µs of CPU for a request of 500 records. It sends no
    POST a second time by itself, which would write duplicates that the ledger knows nothing of.
    """

    def __init__(self, endpoint: KinesisEndpoint, *, connections: int, timeout: float = 30.0) -> None:
        parts = urlsplit(endpoint.url)
        # As the SDKs send to one with a path, of a gateway say, and sign.
        self._path = parts.path or "/"
        self._url = f"{parts.scheme}://{parts.netloc}{self._path}"
        self._region = endpoint.region
        self._credentials = RenewedCredentials(endpoint.credentials)
        self._http = HTTPClient.from_url(
            self._url,
            concurrency=connections,
            block_size=65536,
            connection_timeout=10.0,
            network_timeout=timeout,
            ssl_options={"ca_certs": endpoint.authorities} if endpoint.authorities else None,
        )

    def put_records(self, body: bytes) -> bytes:
        headers = self._signed_headers(body)
        try:
            response = self._http.post(self._path, body, headers)
        except (gevent.socket.gaierror, ConnectionRefusedError, ssl.SSLCertVerificationError) as error:
            raise NotWrittenError("ConnectionFailed", f"{self._url}: {error}") from error
        except (OSError, HTTPParseError) as error:
            raise OutcomeUnknownError("ConnectionLost", f"{self._url}: {error or type(error).__name__}") from error
        try:
            answer = bytes(response.read())
        except (OSError, HTTPParseError) as error:
            raise OutcomeUnknownError("ConnectionLost", f"{self._url}: {error or type(error).__name__}") from error
        if response.status_code != 200:
            raise call_error(response.status_code, answer)
        return answer

    def close(self) -> None:
        self._http.close()

    def _signed_headers(self, body: bytes) -> dict[str, str]:
        request = AWSRequest(
            "POST",
            self._url,
            data=body,
            headers={
                "Content-Type": "application/x-amz-json-1.1",
                "X-Amz-Target": "Kinesis_20131202.PutRecords",
            },
        )
        try:
            credentials = self._credentials.now()
        except CredentialsError as error:
            raise NotWrittenError("NoCredentials", str(error)) from error
        SigV4Auth(credentials, "kinesis", self._region).add_auth(request)
        return dict(request.headers.items())
