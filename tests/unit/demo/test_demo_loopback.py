"""The demo's looks at its own servers."""

from __future__ import annotations

from http.client import BadStatusLine, IncompleteRead
from unittest.mock import Mock

import pytest

from lakestream_demo import loopback
from lakestream_demo.errors import DemoError


@pytest.fixture
def opener(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Whatever is at the other end."""
    made = Mock()
    made.open.return_value.__enter__ = lambda answer: answer
    made.open.return_value.__exit__ = lambda *_: None
    monkeypatch.setattr(loopback, "_OPENER", made)
    return made


def test_a_server_that_ends_within_its_answer_does_not_answer(opener: Mock) -> None:
    """What has ended is told by whoever watches the processes, with the end of its log."""
    opener.open.return_value.read.side_effect = IncompleteRead(b"kinesis_")
    assert loopback.get("http://127.0.0.1:4567/metrics") is None


def test_what_speaks_no_http_does_not_answer(opener: Mock) -> None:
    """Another process took the port: the server says so, and the demo that one may just try again."""
    opener.open.side_effect = BadStatusLine("SSH-2.0-OpenSSH_9.6")
    assert loopback.get("http://127.0.0.1:4567/metrics") is None
    with pytest.raises(DemoError, match="did not create the bucket lake"):
        loopback.create_bucket("http://127.0.0.1:4567", "lake")


@pytest.mark.parametrize(
    ("environ", "excepted"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "", "no_proxy": ".internal"}, ".internal,127.0.0.1"),
        ({"NO_PROXY": "10.0.0.1,.internal"}, "10.0.0.1,.internal,127.0.0.1"),
    ],
)
def test_no_proxy_is_asked_for_this_machine_nor_for_what_was_excepted(environ: dict[str, str], excepted: str) -> None:
    assert loopback.without_proxy(environ) == {"NO_PROXY": excepted, "no_proxy": excepted}
