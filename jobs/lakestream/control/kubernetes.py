"""What a driver asks of the API server: to read a ConfigMap, write a key of it, follow it, and remove pods.

By plain HTTP, for these requests are all that a driver needs: the package `kubernetes` takes 126 MB of the image,
93 MiB of the driver's memory and more than a second of CPU at its start (37.0, `CoreV1Api`).
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from lakestream.errors import RetryLaterError
from lakestream_api.names import NAMESPACE_VARIABLE, POD_UID_VARIABLE, POD_VARIABLE

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts the service account's token and the API server's certificate authority."""

_WATCH_SECONDS = 60
"""After which a watch is begun anew: a connection that died without a word is noticed by then."""
_TIMEOUT = urllib3.Timeout(connect=3, read=5)


class ApiServerError(RetryLaterError):
    """The API server did not answer, or refused."""


@dataclass(frozen=True, slots=True)
class Pod:
    """The driver's own pod, by the downward API."""

    name: str
    uid: str
    namespace: str

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Pod | None:
        """None: this is no pod that the operator made."""
        names = (POD_VARIABLE, POD_UID_VARIABLE, NAMESPACE_VARIABLE)
        name, uid, namespace = (environ.get(variable, "") for variable in names)
        return cls(name, uid, namespace) if name and uid and namespace else None


class ConfigMaps:
    """The ConfigMaps of one namespace, and its pods. Nothing is tried twice: who calls decides on that."""

    def __init__(self, server: str, namespace: str, token: Callable[[], str], authority: Path | None = None) -> None:
        """Connect to an API server.

        Args:
            server: its URL.
            namespace: of the ConfigMaps.
            token: asked for each request, since the kubelet renews it every hour.
            authority: certificates that the server's is checked against; not used for plain http.
        """
        objects = f"{server}/api/v1/namespaces/{quote(namespace, safe='')}"
        self._url, self._pods = f"{objects}/configmaps", f"{objects}/pods"
        self._token = token
        context = ssl.create_default_context(cafile=authority) if authority else None
        # A watch holds one connection while reports are written through another.
        self._http = urllib3.PoolManager(maxsize=2, ssl_context=context, retries=False, timeout=_TIMEOUT)

    @classmethod
    def in_cluster(cls, environ: Mapping[str, str], namespace: str, account: Path = ACCOUNT) -> ConfigMaps:
        """Those of the cluster that this pod runs in, with the rights of its service account.

        Raises:
            ApiServerError: there is no service account, or no API server is announced.
        """
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise ApiServerError("KUBERNETES_SERVICE_HOST is not set, which Kubernetes sets in each container")
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        with _translated("the service account"):
            return cls(server, namespace, (account / "token").read_text, account / "ca.crt")

    def close(self) -> None:
        self._http.clear()

    def read(self, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap, or None if there is none of that name."""
        with _translated(f"get configmap {name}"):
            answer = self._http.request("GET", f"{self._url}/{name}", headers=self._headers())
            if answer.status == 404:
                return None
            return _data(_accepted(answer, f"get configmap {name}"))

    def write(self, name: str, key: str, value: str) -> None:
        """Set one key of a ConfigMap that is there."""
        what, url = f"patch configmap {name}", f"{self._url}/{name}"
        body = json.dumps({"data": {key: value}})
        headers = {**self._headers(), "Content-Type": "application/merge-patch+json"}
        with _translated(what):
            _accepted(self._http.request("PATCH", url, body=body, headers=headers), what)

    def follow(self, name: str) -> Iterator[Mapping[str, str] | None]:
        """The data of a ConfigMap as it is now, and again after each change; None: it was deleted.

        Ends after a minute at the latest. Without a ConfigMap of that name it waits for one.
        """
        what = f"watch configmap {name}"
        # Without a resource version, the server begins with what there is.
        fields = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": str(_WATCH_SECONDS)}
        patience = urllib3.Timeout(connect=3, read=_WATCH_SECONDS + 10)
        with _translated(what):
            answer = self._http.request(
                "GET", self._url, fields=fields, headers=self._headers(), timeout=patience, preload_content=False
            )
            try:
                if answer.status != 200:
                    _accepted(answer, what)
                for line in _lines(answer):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise ApiServerError(f"{what}: {event['object'].get('message')}")
                    yield None if event["type"] == "DELETED" else _data(event["object"])
            finally:
                answer.close()

    def remove_pods(self, labels: Mapping[str, str]) -> None:
        """Remove the pods with these labels at once, whatever they are at: their names are free when this returns."""
        what = "delete pods"
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        fields = {"labelSelector": selector, "gracePeriodSeconds": "0"}
        with _translated(what):
            _accepted(self._http.request("DELETE", f"{self._pods}?{urlencode(fields)}", headers=self._headers()), what)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token().strip()}", "Accept": "application/json"}


def _data(config_map: Mapping[str, Any]) -> Mapping[str, str]:
    return config_map.get("data") or {}


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    # read1 gives what has come; read(n) would wait for n bytes.
    while chunk := answer.read1():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line)


def _accepted(answer: urllib3.BaseHTTPResponse, what: str) -> Any:
    body = answer.data
    if not 200 <= answer.status < 300:
        try:
            message = json.loads(body)["message"]
        except (ValueError, KeyError, TypeError):
            message = body[:200].decode(errors="replace")
        raise ApiServerError(f"{what}: {answer.status}: {message}")
    return json.loads(body)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError, ValueError, KeyError, AttributeError) as error:
        raise ApiServerError(f"{what}: {error}") from error
