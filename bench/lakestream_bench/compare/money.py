"""What each arm costs a month at a user's load, from what was measured and a file of prices. Pure but for reading that.

Every cost is a product: a measured coefficient, inputs that a reader may change, and one price. So the report's page
works the same sums out again, when somebody changes a number, by multiplying.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from lakestream_operator.autoscaler.shard_policy import SHARD_WRITE_BYTES, SHARD_WRITE_RECORDS

HOURS_PER_MONTH = 730.0
DAYS_PER_MONTH = HOURS_PER_MONTH / 24
_SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
_GB = 2**30
"""As AWS bills it."""


class Price(BaseModel):
    """What something costs, and who says so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    dollars: float = Field(ge=0, allow_inf_nan=False)
    unit: str
    as_of: str | None
    """When the source says that it held; None: it gives no date."""
    source: str | None
    """Where it is written; None: an assumption."""


class Prices(BaseModel):
    """A price file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    region: str
    collected: str
    """When the sources were read."""
    prices: tuple[Price, ...]

    def of(self, name: str) -> float:
        """Dollars; `load_prices` has seen to it that those of NEEDED are there."""
        return next(price.dollars for price in self.prices if price.name == name)


def load_prices(file: Path | None = None) -> Prices:
    """Read a price file; None: the one that comes with this package.

    Raises:
        ValueError: the file is no price file, or lacks a price; the message names it.
    """
    content = (file or files("lakestream_bench.compare") / "prices.json").read_bytes()
    try:
        prices = TypeAdapter(Prices).validate_json(content)
    except ValueError as error:
        raise ValueError(f"{file}: no price file: {error}") from error
    if missing := NEEDED - {price.name for price in prices.prices}:
        raise ValueError(f"{file}: it lacks the prices {', '.join(sorted(missing))}; add them")
    names = [price.name for price in prices.prices]
    taken = {one.name for one in fields(Load)} | _derived(Load()).keys()
    if wrong := {name for name in names if names.count(name) > 1 or name in taken}:
        raise ValueError(f"{file}: each price needs a name of its own, which no input has: {', '.join(sorted(wrong))}")
    return prices


NEEDED = {
    *("kinesis_gb_in", "kinesis_gb_out", "kinesis_stream_hour", "kinesis_shard_hour", "kinesis_million_units"),
    *("s3_gb_month", "s3_thousand_writes"),
    *("s3_thousand_reads", "vcpu_hour", "eks_cluster_hour", "glue_dpu_hour", "flink_kpu_hour", "firehose_gb"),
}


@dataclass(frozen=True)
class Load:
    """A user's load, and what is assumed about how it is served."""

    events_per_second: float = 1_000.0
    event_bytes: float = 240.0
    new_keys: float = 0.4
    """Share of the events that make a row that stays: one minus updates and twice the deletes."""
    retention_days: float = 30.0
    """How long a row stays in the table, and an event in JSON."""
    queries_per_day: float = 1_000.0
    batch_seconds: float = 60.0
    """Between two batches (`trigger.interval`)."""
    utilization: float = 0.6
    """Share of the vCPUs paid for that works; 1 would be all."""
    shards: float = 0.0
    """Of a provisioned stream, which has as many as the load needs if these are too few; 0: the stream is on demand."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if not 0 <= getattr(self, one.name) < math.inf:
                raise ValueError(f"{one.name} must be a number from 0 on, got {getattr(self, one.name)}")
        if not (self.events_per_second > 0 and self.utilization > 0 and self.batch_seconds > 0):
            raise ValueError("events_per_second, utilization and batch_seconds must be above zero")


@dataclass(frozen=True)
class Measured:
    """What the model needs to know of an arm."""

    arm: str
    cpu_per_event: float
    """CPU-seconds of writing, what a batch costs however small it is left out."""
    cpu_per_batch: float
    bytes_per_row: float
    """At rest, through rows that live (JSON: through all events)."""
    keeps_all_events: bool
    query_cpu: float
    """CPU-seconds of a query of the newest state, in the mean of its kinds, however small the table is."""
    query_cpu_per_row: float
    """What each row of the table adds."""
    writes_per_batch: float
    """S3 requests at the price of a PUT."""
    reads_per_batch: float
    """S3 requests at the price of a GET."""
    writes_per_query: float
    reads_per_query: float
    writes_per_query_and_batch: float = 0.0
    """What each batch adds that is kept, where nobody merges their files."""
    reads_per_query_and_batch: float = 0.0


@dataclass(frozen=True)
class CostLine:
    """A cost of a month: the product of all that is named."""

    source: str
    """Who is paid, for the plot."""
    coefficient: float
    factors: tuple[str, ...]
    """Names of inputs: of `Load`, or of a price. `1/name` divides."""

    def dollars(self, inputs: Mapping[str, float]) -> float:
        """A month of it."""
        product = self.coefficient
        for factor in self.factors:
            product = product / inputs[factor[2:]] if factor.startswith("1/") else product * inputs[factor]
        return product

    @property
    def by_queries(self) -> bool:
        """Whether it is paid for asking, and not for keeping."""
        return "queries_per_day" in self.factors


def inputs_of(load: Load, prices: Prices) -> dict[str, float]:
    """All that cost lines multiply: what a reader may change, and what follows from it."""
    given = {one.name: getattr(load, one.name) for one in fields(load)}
    return given | _derived(load) | {price.name: price.dollars for price in prices.prices}


def _derived(load: Load) -> dict[str, float]:
    """What Kinesis bills: it rounds records up, and a stream is either on demand or provisioned."""
    provisioned = load.shards > 0
    return {
        "on_demand": 0.0 if provisioned else 1.0,
        "billed_kibibytes": float(math.ceil(load.event_bytes / 1024)),
        "billed_units": float(math.ceil(load.event_bytes / UNIT_BYTES)) if provisioned else 0.0,
        "billed_shards": math.ceil(max(load.shards, least_shards(load))) if provisioned else 0.0,
    }


UNIT_BYTES = 25 * 1024
"""Of a PUT payload unit, by which provisioned streams bill."""


def least_shards(load: Load) -> int:
    """Of a provisioned stream: a shard takes 1,000 records and 1 MiB per second."""
    records, size = load.events_per_second, load.events_per_second * load.event_bytes
    return max(1, math.ceil(records / SHARD_WRITE_RECORDS), math.ceil(size / SHARD_WRITE_BYTES))


@dataclass(frozen=True)
class StreamModes:
    """A month of the stream in each of its capacity modes."""

    on_demand: float
    least_shards: int
    provisioned: float
    """Dollars with that many shards."""
    even_shards: float
    """Up to so many shards a provisioned stream costs less than one on demand."""

    @property
    def even_text(self) -> str:
        """Whole shards."""
        return "∞" if math.isinf(self.even_shards) else f"{math.floor(self.even_shards):,}"


def stream_modes(load: Load, prices: Prices) -> StreamModes:
    """What the stream costs on demand and provisioned, and the break-even between the two."""
    least = least_shards(load)

    def dollars(shards: float) -> float:
        inputs = inputs_of(replace(load, shards=shards), prices)
        return sum(line.dollars(inputs) for line in STREAM_LINES)

    on_demand, provisioned = dollars(0), dollars(least)
    a_shard = HOURS_PER_MONTH * prices.of("kinesis_shard_hour")
    even = least + (on_demand - provisioned) / a_shard if a_shard else math.inf
    return StreamModes(on_demand, least, provisioned, max(0.0, even))


_GB_MONTH = _SECONDS_PER_MONTH / _GB
STREAM_LINES = (
    CostLine("Kinesis", 1024 * _GB_MONTH, ("on_demand", "events_per_second", "billed_kibibytes", "kinesis_gb_in")),
    CostLine("Kinesis", _GB_MONTH, ("on_demand", "events_per_second", "event_bytes", "kinesis_gb_out")),
    CostLine("Kinesis", HOURS_PER_MONTH, ("on_demand", "kinesis_stream_hour")),
    CostLine("Kinesis", HOURS_PER_MONTH, ("billed_shards", "kinesis_shard_hour")),
    CostLine("Kinesis", _SECONDS_PER_MONTH / 1e6, ("events_per_second", "billed_units", "kinesis_million_units")),
)
"""A month of the stream, which is the same for all arms. Reading a provisioned one costs nothing."""


def cost_lines(measured: Measured) -> tuple[CostLine, ...]:
    """A month of one arm."""
    events, vcpu = ("events_per_second",), ("vcpu_hour", "1/utilization")
    per_batch = ("1/batch_seconds",)
    alive = ("events_per_second", "retention_days", *(() if measured.keeps_all_events else ("new_keys",)))
    queries = ("queries_per_day",)
    batch_month = _SECONDS_PER_MONTH / 1e3
    kept, kept_month = ("retention_days", "1/batch_seconds"), 86_400 * DAYS_PER_MONTH / 1e3
    return (
        *STREAM_LINES,
        CostLine("cluster", HOURS_PER_MONTH, ("eks_cluster_hour",)),
        CostLine("writing: CPU", measured.cpu_per_event * _SECONDS_PER_MONTH / 3600, (*events, *vcpu)),
        CostLine("writing: CPU", measured.cpu_per_batch * _SECONDS_PER_MONTH / 3600, (*per_batch, *vcpu)),
        CostLine("writing: requests", measured.writes_per_batch * batch_month, (*per_batch, "s3_thousand_writes")),
        CostLine("writing: requests", measured.reads_per_batch * batch_month, (*per_batch, "s3_thousand_reads")),
        CostLine("storage", measured.bytes_per_row * 86_400 / _GB, (*alive, "s3_gb_month")),
        CostLine("queries: CPU", measured.query_cpu * DAYS_PER_MONTH / 3600, (*queries, *vcpu)),
        CostLine(
            "queries: CPU", measured.query_cpu_per_row * 86_400 * DAYS_PER_MONTH / 3600, (*queries, *alive, *vcpu)
        ),
        CostLine(
            "queries: requests", measured.writes_per_query * DAYS_PER_MONTH / 1e3, (*queries, "s3_thousand_writes")
        ),
        CostLine("queries: requests", measured.reads_per_query * DAYS_PER_MONTH / 1e3, (*queries, "s3_thousand_reads")),
        CostLine(
            "queries: requests",
            measured.writes_per_query_and_batch * kept_month,
            (*queries, *kept, "s3_thousand_writes"),
        ),
        CostLine(
            "queries: requests", measured.reads_per_query_and_batch * kept_month, (*queries, *kept, "s3_thousand_reads")
        ),
    )


@dataclass(frozen=True)
class Bill:
    """A month of one arm."""

    arm: str
    keeping: float
    """Dollars that are paid however often it is asked."""
    asking: float
    """Dollars for the queries."""
    by_source: Mapping[str, float]
    per_terabyte: float
    """Dollars per terabyte (10¹² bytes) of records taken in, without queries."""
    per_thousand_queries: float

    @property
    def total(self) -> float:
        return self.keeping + self.asking


def bill(measured: Measured, load: Load, prices: Prices) -> Bill:
    """What an arm costs at a load."""
    inputs = inputs_of(load, prices)
    by_source: dict[str, float] = {}
    keeping = asking = 0.0
    for line in cost_lines(measured):
        dollars = line.dollars(inputs)
        by_source[line.source] = by_source.get(line.source, 0.0) + dollars
        if line.by_queries:
            asking += dollars
        else:
            keeping += dollars
    terabytes = load.events_per_second * load.event_bytes * _SECONDS_PER_MONTH / 1e12
    return Bill(
        arm=measured.arm,
        keeping=keeping,
        asking=asking,
        by_source=by_source,
        per_terabyte=keeping / terabytes if terabytes else math.inf,
        per_thousand_queries=_per_query(measured, load, prices) * 1_000,
    )


def _per_query(measured: Measured, load: Load, prices: Prices) -> float:
    """Dollars of one query."""
    inputs = inputs_of(load, prices) | {"queries_per_day": 1 / DAYS_PER_MONTH}
    return sum(line.dollars(inputs) for line in cost_lines(measured) if line.by_queries)


class Beats(StrEnum):
    """When one arm costs less than another."""

    ALWAYS = "always"
    NEVER = "never"
    ABOVE = "above"
    """From so many queries per day on."""
    BELOW = "below"
    """Up to so many queries per day."""


@dataclass(frozen=True)
class BreakEven:
    """When `challenger` costs less than `holder`."""

    challenger: str
    holder: str
    beats: Beats
    queries_per_day: float = 0.0
    """With `ABOVE` and `BELOW`."""

    def __str__(self) -> str:
        match self.beats:
            case Beats.ALWAYS | Beats.NEVER:
                return self.beats.value
            case _:
                return f"{self.beats.value} {self.queries_per_day:,.0f} queries a day"


def break_even(challenger: Measured, holder: Measured, load: Load, prices: Prices) -> BreakEven:
    """When one arm costs less than another at a load, by the number of queries; costs are straight lines over it."""
    new, old = bill(challenger, load, prices), bill(holder, load, prices)
    dearer = new.keeping - old.keeping
    saved = (old.per_thousand_queries - new.per_thousand_queries) / 1_000 * DAYS_PER_MONTH
    if saved == 0 or (dearer <= 0) == (saved > 0):
        cheaper = dearer < 0 or (dearer == 0 and saved > 0)
        return BreakEven(challenger.arm, holder.arm, Beats.ALWAYS if cheaper else Beats.NEVER)
    return BreakEven(challenger.arm, holder.arm, Beats.ABOVE if saved > 0 else Beats.BELOW, dearer / saved)


@dataclass(frozen=True)
class Rival:
    """A managed service's list price for the same stream, without what it does not do."""

    name: str
    dollars: float
    """A month."""
    says: str


def rivals(load: Load, prices: Prices, cpu: Measured) -> Sequence[Rival]:
    """What others charge for taking the same events to S3; storage and queries are not among it."""
    kibibytes5 = math.ceil(load.event_bytes / 5120) * 5120
    gigabytes = load.events_per_second * kibibytes5 * _SECONDS_PER_MONTH / _GB
    busy = (cpu.cpu_per_event * load.events_per_second + cpu.cpu_per_batch / load.batch_seconds) / load.utilization
    kpus = max(1, math.ceil(busy)) + 1
    return (
        Rival("Data Firehose", gigabytes * prices.of("firehose_gb"), "per GB, no upserts; each record counts 5 KiB"),
        Rival(
            "Managed Flink",
            kpus * prices.of("flink_kpu_hour") * HOURS_PER_MONTH,
            f"if its CPU per event were that of the {cpu.arm} arm, which is not measured; one KPU more for itself",
        ),
        Rival(
            "Glue streaming",
            max(2, math.ceil(busy / 4)) * prices.of("glue_dpu_hour") * HOURS_PER_MONTH,
            f"at least 2 DPUs, with the CPU per event of the {cpu.arm} arm",
        ),
    )
