"""Records of a GetRecords answer to Arrow, per core: our decoder beside boto3's parser, in one run.

Every contender gets the same bytes as they come from the network, and gives the same Arrow batch.
Times are CPU time of this process, medians over rounds in which the contenders take turns, so that
neither a busy machine nor its cooling favours one of them.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import botocore.session
import orjson
import pyarrow as pa
from botocore.parsers import ResponseParserFactory
from pybase64 import b64encode

from lakestream.kinesis.answers import record_page
from lakestream.kinesis.batches import SCHEMA, record_batches
from lakestream.testing.kpl import aggregate
from lakestream_bench._figures import write_figures
from lakestream_bench._options import out_file, whole
from lakestream_bench._telling import Telling

SHARD = "shardId-000000000000"
RECORDS = 10_000
"""GetRecords gives no more in one answer."""
ROUNDS = 15

Decoder = Callable[[bytes], pa.RecordBatch]


@dataclass(frozen=True)
class Figure:
    """What one decoder makes of one kind of answer."""

    decoder: str
    answer: str
    records: int
    """User records in the answer."""
    records_per_second: float
    """User records per second of CPU."""
    megabytes_per_second: float
    """Megabytes (10^6) of user data per second of CPU."""


def answer(datas: list[bytes]) -> bytes:
    """The body of a GetRecords answer with these records."""
    records = [
        {
            "SequenceNumber": str(49_590_338_271_490_256_608_559_692_538_361_571_095_921_575_989_136_588_898 + i),
            "ApproximateArrivalTimestamp": 1769860800.0 + i / 1000,
            "Data": b64encode(data).decode(),
            "PartitionKey": f"order-{i % 997}",
        }
        for i, data in enumerate(datas)
    ]
    return orjson.dumps({"Records": records, "NextShardIterator": "A" * 224, "MillisBehindLatest": 0})


def aggregates(datas: list[bytes], size: int) -> list[bytes]:
    """The same records, so many to a KPL aggregate."""
    users = [("order", None, data) for data in datas]
    return [aggregate(users[i : i + size]) for i in range(0, len(users), size)]


def ours(body: bytes) -> pa.RecordBatch:
    """As the reader does it."""
    page = record_page(body)
    ((batch, _),) = record_batches(SHARD, page, len(page))
    return batch


def botocore_parser(timestamps: Callable[[Any], Any] | None) -> Decoder:
    """What a boto3 client does with an answer, and then Arrow. None: with its own timestamp parser."""
    model = botocore.session.get_session().get_service_model("kinesis")
    shape = model.operation_model("GetRecords").output_shape
    factory = ResponseParserFactory()
    if timestamps is not None:
        factory.set_parser_defaults(timestamp_parser=timestamps)
    parser = factory.create_parser("json")
    assert shape is not None

    def decode(body: bytes) -> pa.RecordBatch:
        records = parser.parse({"body": body, "headers": {}, "status_code": 200}, shape)["Records"]
        arrivals = [r["ApproximateArrivalTimestamp"] for r in records]
        if timestamps is not None:
            arrivals = [round(arrival * 1000) * 1000 for arrival in arrivals]
        columns = [
            pa.array([r["Data"] for r in records], pa.binary()),
            pa.array([r["PartitionKey"] for r in records], pa.string()),
            pa.array([r["SequenceNumber"] for r in records], pa.string()),
            pa.array([0] * len(records), pa.int64()),
            pa.repeat(pa.scalar(SHARD, pa.string()), len(records)),
            pa.array(arrivals, pa.timestamp("us", tz="UTC")),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    return decode


def measure(decoders: dict[str, Decoder], name: str, body: bytes, rounds: int) -> list[Figure]:
    """Let the decoders take turns on one answer."""
    batches = {decoder: decode(body) for decoder, decode in decoders.items()}
    first = next(iter(batches.values()))
    for decoder, batch in batches.items():
        if not batch.equals(first):
            raise SystemExit(f"{decoder} does not give the same records of {name!r}")
    times: dict[str, list[float]] = {decoder: [] for decoder in decoders}
    for _ in range(rounds):
        for decoder, decode in decoders.items():
            began = time.process_time()
            decode(body)
            times[decoder].append(time.process_time() - began)
    size = sum(len(data.as_py()) for data in first.column("data")) / 1e6
    rows = first.num_rows
    return [
        Figure(decoder, name, rows, rows / statistics.median(took), size / statistics.median(took))
        for decoder, took in times.items()
    ]


def run(rounds: int) -> list[Figure]:
    """All decoders on plain records; ours on aggregates too, which botocore does not unpack."""
    rng = random.Random(7)
    datas = [rng.randbytes(225) for _ in range(RECORDS)]
    plain = {
        "lakestream": ours,
        "botocore": botocore_parser(None),
        "botocore, timestamps as floats": botocore_parser(float),
    }
    telling = Telling(2)
    with telling.measuring("plain records"):
        figures = measure(plain, "10,000 records of 225 B", answer(datas), rounds)
    with telling.measuring("aggregates"):
        return figures + measure({"lakestream": ours}, "KPL, 100 to a record", answer(aggregates(datas, 100)), rounds)


def table(figures: list[Figure]) -> str:
    """The figures for people; the factor is against botocore's parser as it comes."""
    base = next(f.records_per_second for f in figures if f.decoder == "botocore")
    lines = [f"{'decoder':32} {'answer':26} {'records/s':>12} {'MB/s':>8} {'factor':>7}"]
    lines += [
        f"{f.decoder:32} {f.answer:26} {f.records_per_second:12,.0f} {f.megabytes_per_second:8.0f} "
        f"{f.records_per_second / base:7.1f}"
        for f in figures
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print a table, write JSON."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--out", type=out_file, help="write the figures there as JSON")
    arguments.add_argument("--rounds", type=whole(), default=ROUNDS)
    chosen = arguments.parse_args()
    figures = run(chosen.rounds)
    print(table(figures))
    if chosen.out:
        write_figures(chosen.out, "decode", figures)


if __name__ == "__main__":
    main()
