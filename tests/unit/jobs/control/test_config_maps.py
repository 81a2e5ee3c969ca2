"""The three requests to the API server, against a server that answers as Kubernetes does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lakestream.control.kubernetes import ApiServerError, ConfigMaps

MAPS = "/api/v1/namespaces/lake/configmaps"


@dataclass
class Api:
    """What the server has been asked, and what it answers."""

    url: str = ""
    data: dict[str, str] | None = None
    events: list[bytes] = field(default_factory=list)
    status: int | None = None
    requests: list[tuple[str, str, dict[str, list[str]]]] = field(default_factory=list)
    patches: list[tuple[str, object]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)


class Server(ThreadingHTTPServer):
    def __init__(self, api: Api) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.api = api


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        api, target = self.server.api, urlsplit(self.path)
        api.requests.append(("GET", target.path, parse_qs(target.query)))
        api.tokens.append(self.headers["Authorization"])
        if api.status is not None:
            self.answer(api.status, {"kind": "Status", "message": "configmaps is forbidden"})
        elif target.path == MAPS:
            self.stream(api.events)
        elif api.data is None:
            self.answer(404, {"kind": "Status", "message": "not found"})
        else:
            self.answer(200, {"metadata": {}, "data": api.data})

    def do_PATCH(self) -> None:
        api, body = self.server.api, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api.patches.append((self.headers["Content-Type"], body))
        api.requests.append(("PATCH", self.path, {}))
        self.answer(api.status or 200, {"message": "configmaps is forbidden"} if api.status else {})

    def do_DELETE(self) -> None:
        api, target = self.server.api, urlsplit(self.path)
        api.requests.append(("DELETE", target.path, parse_qs(target.query)))
        self.answer(api.status or 200, {"kind": "PodList", "message": "pods is forbidden"})

    def stream(self, events: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            # Events come in pieces, or several at once.
            for piece in filter(None, (event[:7], event[7:])):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class calls it
        """Not in a test's output."""


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    with Server(api) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield api
        server.shutdown()
        thread.join()


@pytest.fixture
def maps(api: Api) -> Iterator[ConfigMaps]:
    tokens = iter(f"token-{number}\n" for number in range(100))
    found = ConfigMaps(api.url, "lake", lambda: next(tokens))
    yield found
    found.close()


def event(kind: str, **data: str) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {}, "data": data}}).encode() + b"\n"


def test_one_is_read_with_a_fresh_token_each_time(api: Api, maps: ConfigMaps) -> None:
    assert maps.read("orders-hudi-control") is None
    api.data = {"control.json": "{}"}
    assert maps.read("orders-hudi-control") == {"control.json": "{}"}
    assert api.requests == [("GET", f"{MAPS}/orders-hudi-control", {})] * 2
    assert api.tokens == ["Bearer token-0", "Bearer token-1"]


def test_one_key_is_patched_and_the_others_are_left_alone(api: Api, maps: ConfigMaps) -> None:
    maps.write("orders-hudi-progress", "report.json", '{"stream":"orders"}')
    assert api.requests == [("PATCH", f"{MAPS}/orders-hudi-progress", {})]
    assert api.patches == [("application/merge-patch+json", {"data": {"report.json": '{"stream":"orders"}'}})]


def test_pods_are_removed_by_label_and_at_once(api: Api, maps: ConfigMaps) -> None:
    maps.remove_pods({"spark-role": "executor", "lakestream.dev/stream": "orders"})
    selector = ["spark-role=executor,lakestream.dev/stream=orders"]
    query = {"labelSelector": selector, "gracePeriodSeconds": ["0"]}
    assert api.requests == [("DELETE", "/api/v1/namespaces/lake/pods", query)]
    api.status = 403
    with pytest.raises(ApiServerError, match="delete pods: 403: pods is forbidden"):
        maps.remove_pods({"spark-role": "executor"})


def test_changes_are_followed_from_what_there_is(api: Api, maps: ConfigMaps) -> None:
    api.events = [event("ADDED", a="1"), event("MODIFIED", a="2") + event("MODIFIED", a="3"), event("DELETED", a="3")]
    assert list(maps.follow("orders-hudi-control")) == [{"a": "1"}, {"a": "2"}, {"a": "3"}, None]
    ((method, path, query),) = api.requests
    assert (method, path) == ("GET", MAPS)
    assert query == {
        "watch": ["true"],
        "fieldSelector": ["metadata.name=orders-hudi-control"],
        "timeoutSeconds": ["60"],
    }


def test_a_watch_that_the_server_ends_with_an_error_says_why(api: Api, maps: ConfigMaps) -> None:
    api.events = [b'{"type": "ERROR", "object": {"kind": "Status", "message": "too old"}}\n']
    with pytest.raises(ApiServerError, match="watch configmap orders-hudi-control: too old"):
        list(maps.follow("orders-hudi-control"))


def test_half_an_event_is_an_error_and_no_event(api: Api, maps: ConfigMaps) -> None:
    api.events = [b'{"type": "ADDED"\n']
    with pytest.raises(ApiServerError):
        list(maps.follow("orders-hudi-control"))


def test_a_refusal_is_told_in_the_servers_words(api: Api, maps: ConfigMaps) -> None:
    api.status = 403
    for ask in (
        lambda: maps.read("x"),
        lambda: maps.write("x", "k", "v"),
        lambda: list(maps.follow("x")),
    ):
        with pytest.raises(ApiServerError, match="configmap x: 403: configmaps is forbidden"):
            ask()


def test_no_server_is_an_error_of_ours() -> None:
    maps = ConfigMaps("http://127.0.0.1:1", "lake", lambda: "token")
    with pytest.raises(ApiServerError, match="get configmap x"):
        maps.read("x")


def test_outside_of_a_cluster_there_is_no_server(tmp_path: Path) -> None:
    with pytest.raises(ApiServerError, match="KUBERNETES_SERVICE_HOST"):
        ConfigMaps.in_cluster({}, "lake", tmp_path)
    with pytest.raises(ApiServerError, match="the service account"):
        ConfigMaps.in_cluster({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "lake", tmp_path)
