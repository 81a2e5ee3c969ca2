"""Servers on the loopback that say what a test has them say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Answers(BaseHTTPRequestHandler):
    """Has bodies for answers, and says nothing of them."""

    body: bytes
    """Of the request."""

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply()

    def reply(self) -> None:
        """By `answer`, to a request that has been read."""
        raise NotImplementedError

    def answer(self, status: int, body: bytes, date: str | None = None) -> None:
        self.send_response_only(status)
        self.send_header("Date", date or self.date_time_string())
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: type[Answers]) -> Iterator[str]:
    """The URL of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


@contextmanager
def answering(*answers: bytes | tuple[int, bytes]) -> Iterator[str]:
    """The URL of a server that has these answers, the last one for ever; status 200, where none is given."""
    left = [answer if isinstance(answer, tuple) else (200, answer) for answer in answers]

    class Handler(Answers):
        def reply(self) -> None:
            self.answer(*(left.pop(0) if len(left) > 1 else left[0]))

    with serving(Handler) as url:
        yield url
