"""Sequence numbers: 186-bit integers that are 56 decimal digits, ordered by shard age and then by arrival.

Hex digits from the most significant, as seen in numbers that Kinesis hands out (version 2):

    2 | shard created, s (9) | shard index (1) | record index (16) | 00 (2) | arrival, s (9) | shard index (8) | 2

The shard's creation second leads, so every number of a child is above every number of its parents,
if only the child is created at least a second later.
"""

from __future__ import annotations

_CREATED_SHIFT = 148
_SHARD_DIGIT_SHIFT = 144
_RECORD_SHIFT = 80
_ARRIVAL_SHIFT = 36
_SHARD_SHIFT = 4
_VERSION = 2
_MARK = 2 << 184
_LAST_RECORD_INDEX = 0x7FFF_FFFF_FFFF_FFFF
# What a shard's own first number has at least, and no number of 56 digits is below.
_LOWEST = _MARK
_HIGHEST = _MARK + (1 << 184)


def first_sequence(shard_index: int, created_s: int) -> int:
    """A shard's StartingSequenceNumber: below each of its records."""
    return sequence_base(shard_index, created_s) | (created_s << _ARRIVAL_SHIFT)


def last_sequence(shard_index: int, created_s: int, closed_s: int) -> int:
    """A closed shard's EndingSequenceNumber: above each of its records."""
    return record_sequence(sequence_base(shard_index, created_s), _LAST_RECORD_INDEX, closed_s)


def sequence_base(shard_index: int, created_s: int) -> int:
    """The bits that all numbers of a shard share."""
    return (
        _MARK
        | (created_s << _CREATED_SHIFT)
        | ((shard_index & 0xF) << _SHARD_DIGIT_SHIFT)
        | (shard_index << _SHARD_SHIFT)
        | _VERSION
    )


def record_sequence(base: int, record_index: int, arrival_s: int) -> int:
    """The number of a shard's `record_index`-th record (from 1)."""
    return base | (record_index << _RECORD_SHIFT) | (arrival_s << _ARRIVAL_SHIFT)


def is_sequence(number: int) -> bool:
    """Whether the number has the layout above."""
    return _LOWEST <= number < _HIGHEST and number & 0xF == _VERSION


def shard_index_of(number: int) -> int:
    """The index of the shard that the number belongs to."""
    return (number >> _SHARD_SHIFT) & 0xFFFF_FFFF


def record_index_of(number: int) -> int:
    """How-manieth of its shard the record with this number is, from 1."""
    return (number >> _RECORD_SHIFT) & 0xFFFF_FFFF_FFFF_FFFF


def arrival_s_of(number: int) -> int:
    """The second in which the record with this number arrived."""
    return (number >> _ARRIVAL_SHIFT) & 0xF_FFFF_FFFF


def created_s_of(number: int) -> int:
    """The creation second of the shard that the number belongs to."""
    return (number >> _CREATED_SHIFT) & 0xF_FFFF_FFFF
