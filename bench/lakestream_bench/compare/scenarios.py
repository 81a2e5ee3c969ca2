"""What happens to the tables: events and batches, in the packages of LST-Bench. Pure.

LST-Bench (Camacho-Rodríguez et al., "LST-Bench: Benchmarking Log-Structured Tables in the Cloud", SIGMOD 2024) calls
its packages longevity (many changes over time), resilience (changes of different size), concurrency (reads beside
writes) and time travel. Each scenario here is asked for its state, its changes and its past, so time travel is part of
each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakestream_loadgen.events import EventMix

DECADE = 10
"""Delta commits between two compactions (`hudi.compaction.everyCommits`, its default)."""
_TURNS = (1.0, 0.4, 1.6)


@dataclass(frozen=True)
class Scenario:
    """A load."""

    name: str
    package: str
    """Of LST-Bench."""
    story: str
    updates: float
    """Share of events that change an order, late ones among them; what neither changes nor deletes makes a new one."""
    deletes: float = 0.0
    late: float = 0.0
    """Share of the events that are handed out after newer ones of their order, perhaps."""
    zipf: float = 0.0
    """Exponent of the customers' popularity; 0 is uniform."""
    days: int = 4
    """Partitions that the orders are spread over, in their order; updates go to any."""
    batches: int = 21
    rows: int = 2_000
    """Events per batch, in the mean."""
    wider: int = 0
    """Bytes of text that each event has more."""
    has_readers: bool = False
    """Whether the table is asked while it is written, but for the batches before the first look."""

    def __post_init__(self) -> None:
        if self.batches < 2 or self.rows < 1 or self.days < 1:
            raise ValueError(f"scenario {self.name}: it needs two batches, one row and one day at least")

    @property
    def mix(self) -> EventMix:
        """For the load generator."""
        return EventMix(
            inserts=1.0 - self.updates - self.deletes,
            deletes=self.deletes,
            late=self.late,
            malformed=0.0,
            max_lateness=86_400 * self.days / self.batches * 3,
            customers=20_000,
            zipf=self.zipf,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Events of each batch: small, middle and large ones in turn, which tell what a batch costs from what an event
        does. Compactions are with middle ones, or they would be taken for a cost of events."""
        turns = (_TURNS[batch % DECADE % len(_TURNS)] for batch in range(self.batches))
        return tuple(max(1, round(self.rows * turn)) for turn in turns)

    def looks(self, *, compacts: bool) -> tuple[int, ...]:
        """Batches after which the table is asked.

        Early, at the quarters of a long run, and at the end. A table that is compacted also before and behind the last
        compaction that begins with a batch: our sink compacts with its first commit and each tenth from then on.
        """
        wanted = {DECADE // 2, self.batches}
        if self.batches >= 4 * DECADE:
            wanted |= {self.batches * quarter // 4 for quarter in (1, 2, 3)}
        if compacts:
            last = (self.batches - 1) // DECADE * DECADE
            wanted |= {last, last + 1}
        return tuple(sorted(batch for batch in wanted if 2 <= batch <= self.batches))

    def scaled(self, size: float) -> Scenario:
        """With so many times the batches of the same size."""
        return replace(self, batches=max(2, round(self.batches * size)))


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("half-updates", "longevity", "half of the events change an order", 0.5, deletes=0.05, late=0.01),
        Scenario("few-updates", "longevity", "a tenth of the events change an order", 0.1, deletes=0.01, late=0.01),
        Scenario("inserts", "longevity", "every event is a new order", 0.0),
        Scenario(
            "wide",
            "longevity",
            "half of the events change an order, and each has 4,000 letters more",
            *(0.5, 0.05, 0.01),
            wider=4_000,
        ),
        Scenario(
            "readers",
            "concurrency",
            "half of the events change an order, and the table is asked while it is written",
            *(0.5, 0.05, 0.01),
            has_readers=True,
        ),
        Scenario(
            "skewed",
            "resilience",
            "half of the events change an order, and few customers have most of them; 30 days are touched by a batch",
            *(0.5, 0.05, 0.01),
            zipf=1.2,
            days=30,
        ),
    )
}
INTERVALS = (2.0, 10.0, 60.0)
"""Seconds between two batches (`trigger.interval`) that freshness is told for, from what they take; the plots have the
middle one."""
MAIN = ("half-updates",)
"""What is run unless scenarios are asked for."""
