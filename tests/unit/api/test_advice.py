"""What a valid document may still suffer from."""

from __future__ import annotations

import pytest

from lakestream_api import LakeStream, advice, load_lakestream_object


def document(interval: str, writers: int, *, pushed: bool = False) -> dict[str, object]:
    """Of writers that may have consumers of their own."""
    arn = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders/consumer"
    return {
        "apiVersion": "lakestream.dev/v1alpha1",
        "kind": "LakeStream",
        "metadata": {"name": "orders"},
        "spec": {
            "source": {"kinesis": {"stream": "orders", "region": "eu-west-1"}},
            "schema": "id string",
            "trigger": {"interval": interval},
            "writers": [
                {"name": f"w{n}", "json": {"path": f"s3a://lake/w{n}"}}
                | ({"consumerArn": f"{arn}/w{n}:1764460800"} if pushed else {})
                for n in range(writers)
            ],
            "checkpoint": "s3a://lake/checkpoint",
        },
    }


@pytest.mark.parametrize(("interval", "writers"), [("400ms", 1), ("800ms", 2), ("10s", 8)])
def test_what_a_shard_can_answer_is_well(interval: str, writers: int) -> None:
    assert list(advice(load_lakestream_object(document(interval, writers)))) == []


@pytest.mark.parametrize(
    ("interval", "writers", "said", "least"),
    [
        ("300ms", 1, "one writer may ask 2 each in 300ms", "400ms"),
        ("1s", 3, "3 writers may ask 2 each in 1s", "1s200ms"),
    ],
)
def test_what_a_shard_cannot_answer_is_told_with_what_it_can(
    interval: str, writers: int, said: str, least: str
) -> None:
    (sentence,) = advice(load_lakestream_object(document(interval, writers)))
    assert sentence.startswith("spec.trigger.interval: ")
    assert said in sentence
    assert sentence.endswith(f"Give it {least} or more.")


def test_what_is_pushed_is_not_asked_for() -> None:
    assert list(advice(load_lakestream_object(document("5s", 8, pushed=True)))) == []
    (asked, *_) = advice(load_lakestream_object(document("1s", 8, pushed=True)))
    assert asked.endswith("Give it 3s200ms or more.")


def test_a_consumer_that_is_mostly_refused_is_told() -> None:
    (sentence,) = advice(load_lakestream_object(document("4s", 1, pushed=True)))
    assert sentence.startswith("spec.writers[0].consumerArn: a consumer may subscribe to a shard once in 5s: ")
    assert "of batches every 4s the others ask" in sentence


@pytest.mark.parametrize(
    ("compression", "catalog", "told"),
    [("zstd", True, True), ("zstd", False, False), ("gzip", True, False), ("none", True, False)],
)
def test_zstd_is_not_for_all_who_read_a_catalog(compression: str, catalog: bool, told: bool) -> None:
    made = document("10s", 2)
    spec = made["spec"]
    assert isinstance(spec, dict)
    named = {"catalog": {"glue": {"database": "lake", "table": "orders"}}} if catalog else {}
    spec["writers"][1]["json"] |= {"compression": compression} | named
    found = list(advice(load_lakestream_object(made)))
    assert len(found) == told
    assert all(one.startswith("spec.writers[1].json.compression: ") for one in found)


def table(interval: str, *hours: float) -> dict[str, object]:
    made = document(interval, 0)
    spec = made["spec"]
    assert isinstance(spec, dict)
    spec["writers"] = [{"name": "files", "json": {"path": "s3a://lake/files"}}] + [
        {
            "name": f"w{number}",
            "hudi": {
                "path": f"s3a://lake/w{number}",
                "recordKey": ["id"],
                "operation": "insert",
                "tableType": "COPY_ON_WRITE",
                "cleaning": {"retainHours": kept},
            },
        }
        for number, kept in enumerate(hours)
    ]
    return made


@pytest.mark.parametrize(("interval", "hours"), [("10s", 2.5), ("4s", 1), ("1s", 0.25)])
def test_nine_hundred_commits_are_kept_without_a_word(interval: str, hours: float) -> None:
    assert list(advice(load_lakestream_object(table(interval, hours)))) == []


@pytest.mark.parametrize(
    ("interval", "hours", "commits", "end"),
    [
        ("10s", 24, "8,640", "Give it 1, if queries take no longer; or spec.trigger.interval more."),
        ("3s", 1, "1,200", "Give it 0.3, if queries take no longer; or spec.trigger.interval more."),
        ("1s200ms", 1, "3,000", "Give it 0.12, if queries take no longer; or spec.trigger.interval more."),
        ("200ms", 0.1, "1,800", "Give it 0.05, if queries take no longer; or spec.trigger.interval more."),
        ("2s500ms", 0.75, "1,080", "Give it 0.25, if queries take no longer; or spec.trigger.interval more."),
    ],
)
def test_more_commits_than_are_kept_quickly_are_told(interval: str, hours: float, commits: str, end: str) -> None:
    *_, sentence = advice(load_lakestream_object(table(interval, 0.05, hours)))
    assert sentence.startswith("spec.writers[2].hudi.cleaning.retainHours: ")
    assert f": {hours:g} at a batch every {interval} are {commits} commits to keep" in sentence
    assert sentence.endswith(end)


def told_of(**hudi: object) -> list[str]:
    made = document("10s", 0)
    spec = made["spec"]
    assert isinstance(spec, dict)
    table = {"path": "s3a://lake/w", "recordKey": ["id"], "orderingField": "version", **hudi}
    spec["writers"] = [{"name": "w", "hudi": table}]
    return list(advice(load_lakestream_object(made)))


LIMIT = {"hoodie.parquet.small.file.limit": "1048576"}


@pytest.mark.parametrize(
    "hudi",
    [
        {"index": {"buckets": 8}},
        {"index": {"expectedPartitionSize": "20Gi"}},
        {"index": {"type": "bloom"}},
        {"operation": "insert"},
        {"operation": "insert", "options": LIMIT},
    ],
    ids=str,
)
def test_what_has_an_effect_is_taken_without_a_word(hudi: dict[str, object]) -> None:
    assert told_of(**hudi) == []


@pytest.mark.parametrize(
    ("hudi", "said"),
    [
        ({"index": {"type": "simple", "buckets": 8}}, "index.buckets: has no effect, since the index simple has no"),
        (
            {"index": {"type": "global_bloom", "expectedPartitionSize": "20Gi"}},
            "index.expectedPartitionSize: has no effect, since the index global_bloom has no buckets",
        ),
        (
            {"operation": "insert", "index": {"buckets": 8}},
            "index.buckets: has no effect, since inserts look no key up",
        ),
        (
            {"operation": "insert", "clustering": {}, "options": LIMIT},
            "options[hoodie.parquet.small.file.limit]: has no effect with clustering",
        ),
    ],
    ids=str,
)
def test_what_has_no_effect_is_told(hudi: dict[str, object], said: str) -> None:
    (sentence,) = told_of(**hudi)
    assert sentence.startswith(f"spec.writers[0].hudi.{said}")


def merged(interval: str, every: int, table_type: str = "MERGE_ON_READ") -> LakeStream:
    made = table(interval, 0.05)
    spec = made["spec"]
    assert isinstance(spec, dict)
    spec["writers"][1]["hudi"] |= {"tableType": table_type, "compaction": {"everyCommits": every}}
    return load_lakestream_object(made)


@pytest.mark.parametrize(
    ("interval", "every", "table_type"),
    [("1s", 30, "MERGE_ON_READ"), ("3s", 10, "MERGE_ON_READ"), ("1s", 10, "COPY_ON_WRITE")],
)
def test_compactions_half_a_minute_apart_are_made_without_a_word(interval: str, every: int, table_type: str) -> None:
    assert not [one for one in advice(merged(interval, every, table_type)) if "everyCommits" in one]


@pytest.mark.parametrize(
    ("interval", "every", "seconds", "instead"),
    [("1s", 10, "10s", 60), ("2s", 14, "28s", 30), ("700ms", 10, "7s", 86), ("1s", 29, "29s", 60)],
)
def test_compactions_every_few_seconds_are_told(interval: str, every: int, seconds: str, instead: int) -> None:
    *_, sentence = advice(merged(interval, every))
    assert sentence.startswith(f"spec.writers[1].hudi.compaction.everyCommits: {every} at a batch every {interval} are")
    assert f"a compaction every {seconds}" in sentence
    assert sentence.endswith(f"Give it {instead}.")


def test_a_window_that_never_comes_is_told() -> None:
    made = document("10s", 1)
    spec = made["spec"]
    assert isinstance(spec, dict)
    windows = [{"cron": cron, "duration": "1h"} for cron in ("0 22 * * *", "0 0 31 4,jun *")]
    spec["scaling"] = {
        "minExecutors": 1,
        "maxExecutors": 4,
        "excludedWindows": windows,
        "schedule": [{"cron": "0 0 30 2 *", "duration": "1h", "executors": 2}],
    }
    excluded, scheduled = advice(load_lakestream_object(made))
    assert excluded.startswith("spec.scaling.excludedWindows[1].cron: '0 0 31 4,jun *' names a day that none of its")
    assert scheduled.startswith("spec.scaling.schedule[0].cron: '0 0 30 2 *' names a day that none of its months has")
