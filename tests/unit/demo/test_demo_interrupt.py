"""Which signals end the demo."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from lakestream_demo.interrupt import Interrupt


@pytest.fixture
def nohup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("nohup")
def test_a_signal_that_is_ignored_on_purpose_stays_ignored() -> None:
    interrupt = Interrupt()
    with interrupt.installed():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == interrupt.request
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
