"""The hand-out of tokens to users, and its end."""

import time
from itertools import count

import gevent
from gevent.event import Event

from lakestream_loadgen.pacer import Pacer
from lakestream_loadgen.shapes import Constant


def test_who_was_given_tokens_has_them_when_the_pacer_has_stopped() -> None:
    """Or their records would come after a drain that found nothing under way, and be lost."""
    taken: list[int] = []
    taken_at_stop: list[int] = []
    stopped = Event()

    def user() -> None:
        while True:
            taken.append(pacer.take(1))

    def backlog() -> int:
        # After this the process hangs until stop and the next hand-out are both due: stop begins, the hand-out
        # comes before the pacer can be killed, and the killed pacer is reported before those it woke have run.
        if next(hand_out) == 1:
            gevent.spawn_later(0.001, stop)
            gevent.spawn(time.sleep, 0.05)
        return 0

    def stop() -> None:
        pacer.stop()
        taken_at_stop.append(len(taken))
        stopped.set()

    hand_out = count()
    pacer = Pacer(Constant(10_000.0), lambda: 1.0, backlog)
    users = [gevent.spawn(user) for _ in range(50)]
    assert stopped.wait(timeout=5.0)
    gevent.sleep(0.05)
    gevent.killall(users)

    assert taken_at_stop == [len(taken)]
