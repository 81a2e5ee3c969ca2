"""Options of Hudi: what is allowed, and what is said of the others."""

from pathlib import Path

import pytest

from lakestream_api.hudi_options import ALLOWED, NAMES, OWNED, REFUSED, problem_of_option, problem_of_value

DOCS = Path(__file__).parents[3] / "docs/hudi.md"


def test_no_option_is_in_two_lists() -> None:
    assert sum(map(len, ALLOWED.values())) == len(NAMES)
    assert not NAMES & OWNED.keys()
    assert not (NAMES | OWNED.keys()) & REFUSED.keys()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hoodie.bucket.index.hash.field", "cannot be given, because it decides in which file a key is"),
        ("hoodie.bucket.index.partition.expressions", "it decides in which file a key is"),
        ("hoodie.index.bucket.engine", "it decides in which file a key is"),
        ("hoodie.datasource.write.keygenerator.class", "it decides in which file a key is"),
        ("hoodie.datasource.write.hive_style_partitioning", "it decides in which file a key is"),
        ("hoodie.simple.index.update.partition.path", "it decides in which file a key is"),
        ("hoodie.bucket.index.num.buckets", "has a field of its own; set index.buckets instead"),
        ("hoodie.datasource.hive_sync.enable", "only Hudi's Spark data source and its tools heed it"),
        ("hoodie.datasource.write.row.writer.enable", "only Hudi's Spark data source"),
        ("hoodie.write.lock.provider", "could undo each other's commits"),
        ("hoodie.datasource.write.payload.class", "the newest version of a key"),
        ("hoodie.combine.before.insert", "a record could be dropped, or written twice"),
        ("hoodie.keep.min.commits", "by it LakeStream finds a batch"),
        ("hoodie.upsert.shuffle.parallelism", "LakeStream sets it to the task slots"),
        ("hoodie.parquet.compresion.codec", "did you mean 'hoodie.parquet.compression.codec'?"),
        ("hoodie.metadata.enabled", "did you mean 'hoodie.metadata.enable'?"),
        ("hoodie.bucket.index.num.bucket", "did you mean 'hoodie.bucket.index.num.buckets'?"),
        ("hoodie.something.else", "is not one of the options that can be given, which docs/hudi.md lists"),
        ("spark.executor.cores", "is not an option of Hudi"),
    ],
)
def test_others_are_refused_with_the_reason_or_the_nearest_name(name: str, says: str) -> None:
    problem = problem_of_option(name)
    assert problem is not None
    assert problem.startswith(repr(name))
    assert says in problem


@pytest.mark.parametrize(
    ("name", "value", "give"),
    [
        ("hoodie.metadata.enable", "yes", "true or false"),
        ("hoodie.metadata.enable", "", "true or false"),
        ("hoodie.parquet.block.size", "1e6", "a whole number"),
        ("hoodie.parquet.block.size", "64 ", "a whole number"),
        ("hoodie.parquet.block.size", "5\n", "a whole number"),
        ("hoodie.memory.merge.fraction", "60%", "a number"),
        ("hoodie.parquet.compression.codec", "zstandard", "uncompressed, snappy, gzip, zstd or lz4_raw"),
    ],
)
def test_a_value_that_hudi_would_fail_at_is_told_with_its_option(name: str, value: str, give: str) -> None:
    assert problem_of_value(name, value) == f"{name!r} cannot be {value!r}; give {give}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.metadata.enable", "False"),
        ("hoodie.embed.timeline.server.threads", "-1"),
        ("hoodie.index.bloom.fpp", "1e-9"),
        ("hoodie.memory.merge.fraction", ".6"),
        ("hoodie.parquet.compression.codec", "GZIP"),
        ("hoodie.metrics.pushgateway.host", "push.example.com"),
    ],
)
def test_others_are_taken(name: str, value: str) -> None:
    assert problem_of_value(name, value) is None


def test_every_refusal_is_reached() -> None:
    for key, why in REFUSED.items():
        name = f"{key}x" if key.endswith(".") else key
        assert why in (problem_of_option(name) or ""), name


def test_the_manual_lists_what_is_allowed() -> None:
    text = DOCS.read_text("utf-8")
    for what, names in ALLOWED.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| {what} |"))
        assert row.count("`") == 2 * len(names) + what.count("`")
        assert all(f"`{name.removeprefix('hoodie.')}`" in row for name in names), what
