"""Tags of streams and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"


def test_tags_are_added_listed_in_pages_and_removed(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1, Tags={"a": "1"})
    api.call("AddTagsToStream", StreamName="orders", Tags={"b": "2", "c": "3", "a": "9"})
    api.call("RemoveTagsFromStream", StreamName="orders", TagKeys=["b", "unknown"])

    assert api.call("ListTagsForStream", StreamName="orders", Limit=1) == {
        "Tags": [{"Key": "a", "Value": "9"}],
        "HasMoreTags": True,
    }
    assert api.call("ListTagsForStream", StreamName="orders", ExclusiveStartTagKey="a")["Tags"] == [
        {"Key": "c", "Value": "3"}
    ]
    assert api.refused("AddTagsToStream", StreamName="orders", Tags={"a;b": "1"}).code == "InvalidArgumentException"
    many = {f"k{i}": "" for i in range(49)}
    assert "cannot have more than 50 tags" in api.refused("AddTagsToStream", StreamName="orders", Tags=many).message


def test_tags_have_their_lengths_and_characters(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    key, value = "k" * 129, "v" * 257
    lengths = "[Member must have length less than or equal to {}, Member must have length greater than or equal to {}]"

    long_key = api.refused("AddTagsToStream", StreamName="orders", Tags={"a": "1", key: "2"})
    long_value = api.refused("CreateStream", StreamName="more", ShardCount=1, Tags={"a": value})
    removed = api.refused("RemoveTagsFromStream", StreamName="orders", TagKeys=["a", key])

    assert (long_key.code, long_key.message) == (
        "ValidationException",
        f"1 validation error detected: Value '{{a=1, {key}=2}}' at 'tags' failed to satisfy constraint: "
        f"Map keys must satisfy constraint: {lengths.format(128, 1)}",
    )
    assert f"'{{a={value}}}' at 'tags' failed to satisfy constraint: Map value must satisfy" in long_value.message
    assert removed.code == "ValidationException"
    assert removed.message.endswith(
        f"at 'tagKeys' failed to satisfy constraint: Member must satisfy constraint: {lengths.format(128, 1)}"
    )
    for text in ("a;b", "a,b", "a\tb", "a\nb", "a%b"):
        assert api.refused("AddTagsToStream", StreamName="orders", Tags={text: "1"}).code == "InvalidArgumentException"
        assert api.refused("AddTagsToStream", StreamName="orders", Tags={"a": text}).code == "InvalidArgumentException"
    api.call("AddTagsToStream", StreamName="orders", Tags={"k" * 128: "v" * 256, "ü0 _./=+-@": ""})
    assert api.refused("AddTagsToStream", StreamName="orders").code == "ValidationException"


def test_tags_change_when_the_stream_is_active(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=1, Tags={"a": "1"})

    assert slow.call("ListTagsForStream", StreamName="orders")["Tags"] == [{"Key": "a", "Value": "1"}]
    assert slow.refused("AddTagsToStream", StreamName="orders", Tags={"b": "2"}).code == "ResourceInUseException"
    assert slow.refused("RemoveTagsFromStream", StreamName="orders", TagKeys=["a"]).code == "ResourceInUseException"
    slow.clock.advance(10_000)
    slow.call("AddTagsToStream", StreamName="orders", Tags={"b": "2"})


def test_a_stream_takes_fifty_tags_from_its_creation_on(api: Api):
    tags = {f"k{number}": "" for number in range(51)}

    refused = api.refused("CreateStream", StreamName="orders", ShardCount=1, Tags=tags)

    assert refused.code == "InvalidArgumentException"
    assert api.call("ListStreams")["StreamNames"] == []


def test_resources_are_tagged_by_their_arns(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1, Tags={"a": "1"})
    consumer = api.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="lake", Tags={"team": "x"})["Consumer"]
    for arn, first in ((ARN, {"a": "1"}), (consumer["ConsumerARN"], {"team": "x"})):
        api.call("TagResource", ResourceARN=arn, Tags={"b": "2", "c": "3"})
        api.call("UntagResource", ResourceARN=arn, TagKeys=["b", "unknown"])
        tags = {tag["Key"]: tag["Value"] for tag in api.call("ListTagsForResource", ResourceARN=arn)["Tags"]}
        assert tags == {**first, "c": "3"}

    listed = api.call("ListTagsForStream", StreamName="orders")["Tags"]
    assert listed == api.call("ListTagsForResource", ResourceARN=ARN)["Tags"]


def test_what_cannot_be_tagged_is_refused(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=1)
    changing = slow.refused("TagResource", ResourceARN=ARN, Tags={"a": "1"})
    slow.clock.advance(10_000)
    missing = slow.refused("ListTagsForResource", ResourceARN=f"{ARN}2")
    queue = slow.refused("ListTagsForResource", ResourceARN=ARN.replace("stream/orders", "queue/orders"))
    consumer = slow.refused("UntagResource", ResourceARN=f"{ARN}/consumer/lake:1", TagKeys=["a"])
    foreign = slow.refused("ListTagsForResource", ResourceARN=ARN.replace("000000000000", "123456789012"))
    malformed = slow.refused("TagResource", ResourceARN="orders", Tags={"a": "1"})
    nothing = slow.refused("UntagResource", ResourceARN=ARN)
    many = slow.refused("TagResource", ResourceARN=ARN, Tags={f"k{number}": "" for number in range(51)})

    assert changing.code == "ResourceInUseException"
    assert {missing.code, queue.code, consumer.code} == {"ResourceNotFoundException"}
    assert foreign.code == "AccessDeniedException"
    assert {malformed.code, nothing.code} == {"ValidationException"}
    assert many.code == "InvalidArgumentException"
