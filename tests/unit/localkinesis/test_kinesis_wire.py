"""JSON 1.1 and CBOR as the SDKs write and read them."""

from __future__ import annotations

import math

import cbor2
import pytest

from lakestream_localkinesis.errors import ResourceNotFoundException, SerializationException
from lakestream_localkinesis.wire import WireFormat, decode_fields, encode_answer, encode_error

JSON, CBOR = WireFormat.JSON, WireFormat.CBOR


def test_the_format_is_the_content_types():
    assert WireFormat.of("application/x-amz-cbor-1.1") is CBOR
    assert WireFormat.of("application/x-amz-json-1.1; charset=utf-8") is JSON
    assert WireFormat.of("") is JSON


def test_a_cbor_request_reads_like_a_json_one():
    fields = {
        "StreamName": "orders",
        "Records": [{"Data": b"\x00\xff", "PartitionKey": "k"}],
        "ShardFilter": {"Type": "AT_TIMESTAMP", "Timestamp": cbor2.CBORTag(1, 1_700_000_000_123)},
    }

    assert decode_fields(CBOR, cbor2.dumps(fields)) == {
        "StreamName": "orders",
        "Records": [{"Data": "AP8=", "PartitionKey": "k"}],
        "ShardFilter": {"Type": "AT_TIMESTAMP", "Timestamp": 1_700_000_000.123},
    }


def test_seconds_as_a_float_are_understood_too():
    body = cbor2.dumps({"Timestamp": cbor2.CBORTag(1, 1_700_000_000.5)})

    assert decode_fields(CBOR, body) == {"Timestamp": 1_700_000_000.5}


def test_indefinite_lengths_as_the_java_sdk_writes_them():
    # {_ "StreamName": "s", "Records": [_ {_ "Data": h'01' }]}
    body = b"\xbf\x6aStreamName\x61s\x67Records\x9f\xbf\x64Data\x41\x01\xff\xff\xff"

    assert decode_fields(CBOR, body) == {"StreamName": "s", "Records": [{"Data": "AQ=="}]}


def test_ready_json_becomes_cbor_with_bytes_and_milliseconds():
    page = b'{"Records":[{"Data":"AP8=","ApproximateArrivalTimestamp":1700000000.123}],"NextShardIterator":null}'
    encoded = encode_answer(CBOR, page)

    assert b"\xc1\x1b" + (1_700_000_000_123).to_bytes(8, "big") in encoded  # tag 1 over milliseconds
    decoded = cbor2.loads(encoded, semantic_decoders={1: lambda value, _: ("tag 1", value)})
    assert decoded == {
        "Records": [{"Data": b"\x00\xff", "ApproximateArrivalTimestamp": ("tag 1", 1_700_000_000_123)}],
        "NextShardIterator": None,
    }
    assert encode_answer(JSON, page) == page


def test_an_answer_without_members_has_no_json_body():
    assert encode_answer(JSON, {}) == b""
    assert encode_answer(CBOR, {}) == cbor2.dumps({})


@pytest.mark.parametrize("wire", list(WireFormat))
def test_errors_bear_type_and_message(wire: WireFormat):
    body = encode_error(wire, ResourceNotFoundException("gone"))

    assert decode_fields(wire, body) == {"__type": "ResourceNotFoundException", "message": "gone"}


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (JSON, b"{"),
        (JSON, b"1"),
        (CBOR, b"\xbf\x61"),
        (CBOR, b"\x01"),
        (CBOR, b""),
        (CBOR, cbor2.dumps({"Timestamp": cbor2.CBORTag(1, "noon")})),
        (CBOR, cbor2.dumps({"Timestamp": cbor2.CBORTag(1, math.nan)})),
        (CBOR, cbor2.dumps({"Timestamp": cbor2.CBORTag(1, 10**400)})),
        (CBOR, cbor2.dumps({"MaxResults": math.inf})),
        (CBOR, cbor2.dumps({"Tags": {1: "a"}})),
        (CBOR, b"\xd8\x1c\xa1\x61a\xd8\x1d\x00"),  # a map that is in itself
    ],
)
def test_bodies_that_are_none(wire: WireFormat, body: bytes):
    with pytest.raises(SerializationException):
        decode_fields(wire, body)
