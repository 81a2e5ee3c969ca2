"""A request to S3 is on its way when its sender dies or freezes, and lands when a successor is at work."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Self

from chaos.faults.base import Ending
from chaos.faults.disturbances import IN_PARTS
from chaos.faults.endings import OWNS_THE_LOG, await_takeover, require_gone
from chaos.s3 import Effect, S3Fault
from chaos.setting import Place, Setting

if TYPE_CHECKING:
    from chaos.driver import Driver
    from chaos.world import World

_HOLD_SECONDS = 45.0
_HOLD_BATCHES = 8
"""That may be committed without such a request, before one is not waited for any more."""
_KINDS = (
    "hudi commit", "hudi commit", "timeline", "log commit", "plan", "data", "data", "complete", "delete", "side file",
    "archived",
)  # fmt: skip
_LANDINGS = (OWNS_THE_LOG, "lakestream.app: reading the stream", "")
"""What the successor has logged by then: that it owns the log; that it has undone what was not complete. Empty: it has
committed a batch."""


@dataclass(frozen=True)
class HeldRequest(Ending):
    """The next request of a kind is held; its driver is killed or frozen, and a successor starts."""

    target: str
    frozen: bool
    landing: int
    """Place in `_LANDINGS`."""

    weight = 8
    group = "held requests"

    @classmethod
    def suits(cls, setting: Setting) -> bool:
        return setting.place is Place.S3

    @classmethod
    def draw(cls, chance: Random) -> Self:
        target = chance.choice(_KINDS)
        return cls(target, chance.random() < 0.4, chance.randrange(len(_LANDINGS)))

    def end(self, world: World, driver: Driver) -> None:
        proxy = world.proxy
        assert proxy is not None  # it suits S3 alone
        is_hudis = self.target in ("hudi commit", "timeline", "complete", "side file", "archived")
        target = "data" if is_hudis and not world.setting.sink.is_hudi else self.target
        if target == "complete":
            world.producer.flood(*IN_PARTS)
        proxy.faults.add(S3Fault(Effect.HOLD, target, times=1))
        enough = driver.batches + _HOLD_BATCHES
        driver.until(lambda: proxy.held or driver.batches >= enough, _HOLD_SECONDS)
        held = proxy.held
        world.tell(f"held: {held or f'nothing of the kind {target!r} came'}")
        if self.frozen:
            driver.freeze()
        else:
            driver.kill()
        successor = world.start()
        successor.crosses = self.frozen
        logged = _LANDINGS[self.landing]
        await_takeover(world, successor, 0 if logged else 1, logged)
        proxy.faults.clear()
        for landed in proxy.release():
            world.tell(f"landed late: {landed}")
            world.counts["requests landed late"] += 1
            # The log of which the successor has a list by now has one more: it ends when it writes its own.
            successor.hurt |= target in ("plan", "log commit")
        if self.frozen:
            driver.thaw()
            require_gone(world, driver)
