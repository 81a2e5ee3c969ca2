"""The hand-out of tokens to users, and its end."""

import time
from itertools import count

import gevent
import pytest
from gevent.event import Event

from lakestream_loadgen import pacer as module
from lakestream_loadgen.pacer import Pacer
from lakestream_loadgen.pacing import Part
from lakestream_loadgen.shapes import Constant, Step


def test_who_was_given_tokens_has_them_when_the_pacer_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or their records would come after a drain that found nothing under way, and be lost."""
    monkeypatch.setattr(module, "_TICK", 1e-9)  # due at once, as on a machine that hung
    taken: list[int] = []
    taken_at_stop: list[int] = []
    stopped = Event()

    def user() -> None:
        while True:
            taken.append(pacer.take(1))

    def backlog() -> int:
        # Stop and the next hand-out are due together: stop begins, the hand-out comes before the pacer can be
        # killed, and the killed pacer is reported before those it woke have run.
        if next(hand_out) == 1:
            gevent.spawn_later(0.0, stop)
        return 0

    def stop() -> None:
        pacer.stop()
        taken_at_stop.append(len(taken))
        stopped.set()

    hand_out = count()
    failures: list[str] = []
    part = Part(workers=1, began=time.monotonic())
    pacer = Pacer(Constant(1e12), lambda: part, backlog, on_failure=failures.append)
    users = [gevent.spawn(user) for _ in range(50)]
    assert stopped.wait(timeout=60.0)
    for _ in users:
        gevent.sleep(0)
    gevent.killall(users)

    assert taken_at_stop == [len(taken)]
    assert failures == []


def test_a_pacer_that_cannot_go_on_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Its users wait for tokens until the run is over: a load of nothing was a success."""
    failures: list[str] = []
    failed = Event()

    def on_failure(why: str) -> None:
        failures.append(why)
        failed.set()

    part = Part(workers=1, began=time.monotonic() - 1.0)
    Pacer(Step(1.0, 1e-320), lambda: part, lambda: 0, on_failure)
    assert failed.wait(timeout=60.0)
    assert failures == ["the load's shape has no rate: OverflowError('cannot convert float infinity to integer')"]
    assert "OverflowError" in capsys.readouterr().err
