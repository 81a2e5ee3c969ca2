"""HTTP/2: our end joined with the h2 library's client end, in memory."""

from __future__ import annotations

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import pytest
from h2.settings import SettingCodes

from lakestream_localkinesis import http
from lakestream_localkinesis.http import Request, Response
from lakestream_localkinesis.http2 import PREFACE, Http2

DATE = "Tue, 14 Nov 2023 22:13:20 GMT"
HEADERS = [(":method", "POST"), (":path", "/?q"), (":scheme", "http"), (":authority", "x"), ("x-amz-target", "T")]


class Pair:
    """A client and our server end."""

    def __init__(self) -> None:
        self.client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.server = Http2()
        self.client.initiate_connection()

    def to_server(self, *, byte_by_byte: bool = False) -> list[tuple[int, Request]]:
        data = self.client.data_to_send()
        step = 1 if byte_by_byte else max(len(data), 1)
        return [
            request
            for start in range(0, len(data), step)
            for request in self.server.receive(data[start : start + step])
        ]

    def to_client(self) -> list[h2.events.Event]:
        return self.client.receive_data(self.server.data_to_send())

    def settle(self) -> None:
        self.to_server()
        self.to_client()
        self.to_server()


def joined(events: list[h2.events.Event]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, h2.events.DataReceived))


@pytest.mark.parametrize("byte_by_byte", [False, True])
def test_a_request_is_the_same_however_it_is_cut(byte_by_byte: bool):
    pair = Pair()
    pair.client.send_headers(1, HEADERS)
    pair.client.send_data(1, b"hel")
    pair.client.send_data(1, b"lo", end_stream=True)

    [(stream, request)] = pair.to_server(byte_by_byte=byte_by_byte)

    assert (stream, request.method, request.path, request.body) == (1, "POST", "/", b"hello")
    assert request.headers["x-amz-target"] == "T"


def test_a_body_beyond_all_bounds_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "MOST_BODY_BYTES", 4)
    pair = Pair()
    pair.client.send_headers(1, HEADERS)
    pair.client.send_data(1, b"hello", end_stream=True)

    [(_, request)] = pair.to_server()

    assert request.body is None


def test_a_client_begins_with_the_preface():
    pair = Pair()
    assert pair.client.data_to_send().startswith(PREFACE)


def test_requests_interleave_and_are_answered_in_any_order():
    pair = Pair()
    for stream in (1, 3):
        pair.client.send_headers(stream, HEADERS)
    pair.client.send_data(3, b"three", end_stream=True)
    pair.client.send_data(1, b"one", end_stream=True)

    assert [(stream, request.body) for stream, request in pair.to_server()] == [(3, b"three"), (1, b"one")]
    pair.server.respond(1, Response(200, "t", b"first"), DATE)
    pair.server.respond(3, Response(404, "t", b"second", {"X-Amzn-RequestId": "id"}), DATE)
    events = pair.to_client()
    headers = {
        event.stream_id: dict(event.headers) for event in events if isinstance(event, h2.events.ResponseReceived)
    }
    assert headers[1][":status"] == "200"
    assert headers[1]["date"] == DATE
    assert headers[3][":status"] == "404"
    assert headers[3]["x-amzn-requestid"] == "id"
    assert joined(events) == b"firstsecond"


def test_an_answer_larger_than_the_clients_credit_goes_out_as_it_is_granted():
    pair = Pair()
    pair.client.send_headers(1, HEADERS, end_stream=True)
    pair.to_server()
    body = bytes(range(256)) * 4000
    pair.server.respond(1, Response(200, "t", body), DATE)
    got = b""
    ended = False
    while not ended:
        events = pair.to_client()
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                pair.client.acknowledge_received_data(event.flow_controlled_length, 1)
            ended = ended or isinstance(event, h2.events.StreamEnded)
        part = joined(events)
        assert len(part) <= 65_535
        got += part
        pair.to_server()

    assert got == body


def test_credit_that_a_client_gives_all_its_streams_by_a_setting_goes_on_with_an_answer():
    """RFC 9113, 6.9.2: no WINDOW_UPDATE of the stream follows."""
    pair = Pair()
    pair.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    pair.client.send_headers(1, HEADERS, end_stream=True)
    pair.to_server()
    pair.server.respond(1, Response(200, "t", b"answer"), DATE)
    assert joined(pair.to_client()) == b""
    pair.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 65_535})
    pair.to_server()

    assert joined(pair.to_client()) == b"answer"
    assert not pair.server.is_open(1)


def test_a_whole_put_needs_no_credit_in_between():
    pair = Pair()
    pair.settle()
    pair.client.send_headers(1, HEADERS)
    assert pair.client.local_flow_control_window(1) >= 14 * 1024 * 1024


@pytest.mark.parametrize("byte_by_byte", [False, True])
def test_a_client_that_says_farewell_gets_the_answers_under_way(byte_by_byte: bool):
    pair = Pair()
    pair.client.send_headers(1, HEADERS, end_stream=True)
    pair.to_server()
    # Written by hand: with its own, the h2 client would stop listening as well.
    farewell = b"\x00\x00\x08\x07\x00" + bytes(4) + bytes(8)
    for part in [farewell[i : i + 1] for i in range(len(farewell))] if byte_by_byte else [farewell]:
        assert pair.server.receive(part) == []
    pair.server.respond(1, Response(200, "t", bytes(100_000)), DATE)
    got = joined(pair.to_client())
    pair.client.increment_flow_control_window(100_000)
    pair.client.increment_flow_control_window(100_000, stream_id=1)
    pair.to_server()
    got += joined(pair.to_client())

    assert got == bytes(100_000)


def test_a_request_that_the_client_gave_up_is_not_answered():
    pair = Pair()
    pair.client.send_headers(1, HEADERS, end_stream=True)
    pair.client.send_headers(3, HEADERS)
    pair.to_server()
    pair.client.reset_stream(1)
    pair.client.reset_stream(3)
    pair.to_server()
    pair.server.respond(1, Response(200, "t", b"late"), DATE)

    assert joined(pair.to_client()) == b""


def test_an_answer_that_is_given_up_half_way_ends_alone():
    """Credit comes along with the word that it is not wanted any more; other answers on the connection go on."""
    pair = Pair()
    for stream in (1, 3):
        pair.client.send_headers(stream, HEADERS, end_stream=True)
    pair.to_server()
    for stream in (1, 3):
        pair.server.respond(stream, Response(200, "t", bytes(70_000)), DATE)
    pair.to_client()
    pair.client.increment_flow_control_window(100_000)
    pair.client.increment_flow_control_window(100_000, stream_id=1)
    pair.client.reset_stream(1)
    pair.to_server()
    pair.client.increment_flow_control_window(100_000, stream_id=3)
    pair.to_server()

    assert not pair.server.is_open(1)
    assert len(joined(pair.to_client())) >= 70_000


def test_what_is_no_http2_is_refused():
    with pytest.raises(h2.exceptions.ProtocolError):
        # A DATA frame on stream 0.
        Http2().receive(PREFACE + b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x")
