"""The proxy that stands between this machine and Kinesis, as any AWS SDK finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from botocore.httpsession import ProxyConfiguration
from botocore.utils import get_environ_proxies

from lakestream.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Proxy:
    """One that is spoken to by plain HTTP: tunnels (CONNECT) for HTTPS, forwards the rest."""

    host: str
    port: int
    headers: Mapping[str, str] = field(repr=False)
    """What it knows us by, which is a secret."""


def proxy_of(url: str) -> Proxy | None:
    """That of HTTPS_PROXY or HTTP_PROXY, or of these names in lower case, by the URL's scheme; None: there is none, or
    NO_PROXY excepts the host.

    Raises:
        SettingsError: what is set is the URL of no such proxy. It is not repeated: there may be a password in it.
    """
    scheme = urlsplit(url).scheme
    given = get_environ_proxies(url).get(scheme)
    if not given:
        return None
    told = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(told)
        host, port = parts.hostname, parts.port
        headers = ProxyConfiguration().proxy_headers_for(told)
    except ValueError:
        host = None
    if not host or parts.scheme != "http":
        raise SettingsError(
            f"{scheme.upper()}_PROXY is not the URL of a proxy for Kinesis: write it as in http://proxy.internal:3128, "
            f"or except {urlsplit(url).hostname} by NO_PROXY"
        )
    return Proxy(host, port or 80, headers)
