"""Unit tests neither sleep nor leave the machine."""

from __future__ import annotations

import ipaddress
import socket
import sys
import time
from typing import Any

import pytest

_sleep = time.sleep
_connect = socket.socket.connect


def _no_sleep(seconds: float) -> None:
    if sys._getframe(1).f_globals["__name__"] == "subprocess":  # it waits for the end of a process so
        return _sleep(seconds)
    pytest.fail(f"a unit test sleeps for {seconds} s; let it be told, or pass a sleep of its own")


def _connect_here(self: socket.socket, address: Any) -> None:
    if self.family != socket.AF_UNIX and address[0] != "localhost" and not ipaddress.ip_address(address[0]).is_loopback:
        pytest.fail(f"a unit test connects to {address}")
    _connect(self, address)


@pytest.fixture(autouse=True)
def here_and_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks for another time or place fails."""
    monkeypatch.setattr(time, "sleep", _no_sleep)
    monkeypatch.setattr(socket.socket, "connect", _connect_here)
