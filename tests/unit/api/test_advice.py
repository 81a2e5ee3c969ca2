"""What a valid document may still suffer from."""

from __future__ import annotations

import pytest

from lakestream_api import advice, load_lakestream_object


def document(interval: str, writers: int) -> dict[str, object]:
    return {
        "apiVersion": "lakestream.dev/v1alpha1",
        "kind": "LakeStream",
        "metadata": {"name": "orders"},
        "spec": {
            "source": {"kinesis": {"stream": "orders", "region": "eu-west-1"}},
            "schema": "id string",
            "trigger": {"interval": interval},
            "writers": [{"name": f"w{n}", "json": {"path": f"s3a://lake/w{n}"}} for n in range(writers)],
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
