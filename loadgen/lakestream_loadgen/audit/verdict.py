"""The verdict: a pure function of two histories, what was acknowledged and what the lake holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakestream_loadgen.content import canonical_text, checksums, with_room
from lakestream_loadgen.errors import LakeError, LedgerError
from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.ledger.reader import OpenLedger

_SAMPLES = 10
_EVENT_ID = r'"event_id":"(?P<event_id>[^"]+)"'

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Kind(StrEnum):
    """What can be wrong."""

    MISSING = "missing"
    """Acknowledged, but the lake has no row of its shard and sequence number."""
    QUARANTINE_MISSING = "quarantine_missing"
    """The same for a malformed event, which belongs in quarantine."""
    DOUBLED = "doubled"
    """A row that repeats another's shard, sequence and sub-sequence number: our doing, never the producer's."""
    ALTERED = "altered"
    """The content is not what was sent."""
    MISPLACED = "misplaced"
    """A malformed event among the rows, or a good one in quarantine."""
    UNEXPECTED = "unexpected"
    """Not in the ledger, or known not to be in the stream, or more copies than the producer's attempts."""


@dataclass(frozen=True)
class Finding:
    """An example of something wrong."""

    kind: Kind
    event_id: str | None
    shard_id: str | None
    sequence_number: str | None


@dataclass(frozen=True)
class OpenLedgerSeen:
    """What there is of a ledger without its end."""

    name: str
    unsettled: int
    """Its events without an outcome."""
    absent: int
    """Those of them that did not arrive: lost by us, if the ledger lacks that they were acknowledged."""
    sent_after: int
    """Rows that arrived of events with its prefix that it does not name."""


@dataclass(frozen=True)
class AuditVerdict:
    """Counts of events and rows. ``ok`` is the verdict; the first group must be zero for it."""

    missing: int
    quarantine_missing: int
    doubled: int
    altered: int
    misplaced: int
    unexpected: int

    acknowledged: int
    """Events that Kinesis acknowledged, malformed ones included."""
    failed: int
    """Events given up that cannot be in the stream."""
    unknown: int
    """Events that may or may not be in the stream."""
    unknown_arrived: int
    """Those of the unknown that did arrive."""
    producer_duplicates: int
    """Rows beyond the first of an event, of other sequence numbers: the producer's own retries."""
    rows: int
    quarantined: int
    """Rows in quarantine."""
    findings: tuple[Finding, ...]
    """Up to ten of each kind."""
    open_ledgers: tuple[OpenLedgerSeen, ...] = ()
    """Those without an end, which may lack what a loss would be seen by."""
    open_ledgers_allowed: bool = False
    """Whether somebody knows that their workers were killed, and that they lack nothing."""

    @property
    def faultless(self) -> bool:
        """Whether nothing is wrong of what can be seen."""
        return not any(getattr(self, kind) for kind in Kind)

    @property
    def complete(self) -> bool:
        """Whether all could be seen, or what could not is allowed."""
        return self.open_ledgers_allowed or not any(seen.absent or seen.sent_after for seen in self.open_ledgers)

    @property
    def ok(self) -> bool:
        return self.faultless and self.complete


def audit(
    ledger: pa.Table,
    lake: pa.Table,
    quarantine: pa.Table | None = None,
    *,
    open_ledgers: Sequence[OpenLedger] = (),
    allow_open_ledgers: bool = False,
) -> AuditVerdict:
    """Hold the rows of a lake, and its quarantine, against the ledger.

    Args:
        ledger: As LEDGER_SCHEMA; see read_ledger.
        lake: Rows with the event's columns and ``_shard_id``, ``_sequence_number``, ``_sub_sequence``.
        quarantine: Rows as QUARANTINE_SCHEMA; None for a lake without.
        open_ledgers: Those that the ledger has no end of; see read_ledgers.
        allow_open_ledgers: Take them for those of killed workers, which lack nothing.

    Raises:
        LedgerError: an event_id occurs twice in the ledger.
        LakeError: the lake lacks a column of the event, or of the places of records.
    """
    judged = _Audit(ledger, _arrivals(lake, quarantine), open_ledgers)
    return replace(judged.verdict(), open_ledgers_allowed=allow_open_ledgers)


def _arrivals(lake: pa.Table, quarantine: pa.Table | None) -> pa.Table:
    """Rows and quarantined records alike: event_id, place, checksum, and which of the two."""
    lacking = [name for name in ("_shard_id", "_sequence_number") if lake[name].null_count == len(lake) > 0]
    if lacking:
        raise LakeError(f"the rows lack {', '.join(lacking)}: the transform of an audited table must keep it")
    good = pa.table(
        {
            "event_id": lake["event_id"],
            "shard_id": lake["_shard_id"],
            "sequence_number": lake["_sequence_number"],
            "sub_sequence": lake["_sub_sequence"],
            "checksum": checksums(canonical_text(lake)),
            "quarantined": np.zeros(len(lake), dtype=np.bool_),
        }
    )
    if quarantine is None:
        return good
    return pa.concat_tables([good, _quarantined(quarantine).cast(good.schema)])


def _quarantined(quarantine: pa.Table) -> pa.Table:
    # The bytes need not be UTF-8; the pattern is ASCII, and as binary it is looked for byte by byte.
    found = pc.extract_regex(quarantine["data"].cast(pa.binary()), _EVENT_ID)
    return pa.table(
        {
            "event_id": _text(pc.struct_field(found, "event_id")),
            "shard_id": quarantine["shard_id"],
            "sequence_number": quarantine["sequence_number"],
            "sub_sequence": quarantine["sub_sequence"],
            "checksum": checksums(quarantine["data"]),
            "quarantined": np.ones(len(quarantine), dtype=np.bool_),
        }
    )


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes as text; null, as no event is called, where they are not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array([[_decoded(value) for value in values.to_pylist()]], pa.string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


class _Audit:
    """The arrays that the findings are made of: one entry per ledger entry, or per row that arrived."""

    def __init__(self, ledger: pa.Table, rows: pa.Table, open_ledgers: Sequence[OpenLedger]) -> None:
        if pc.count_distinct(ledger["event_id"]).as_py() != len(ledger):
            raise LedgerError("an event_id is in the ledger twice: were the same files copied into one folder?")
        self.ledger = ledger = with_room(ledger)
        self.rows = rows = with_room(rows)
        position = pc.index_in(rows["event_id"], value_set=ledger["event_id"].combine_chunks())
        self.known = _mask(pc.is_valid(position))
        self.entry: Numbers = pc.fill_null(position, 0).to_numpy().astype(np.int64)
        self.outcome = ledger["outcome"].to_numpy()
        self.attempts: Numbers = ledger["attempts"].to_numpy().astype(np.int64)
        self.malformed = _mask(ledger["malformed"])
        self.first = _first_of_each(rows)
        self.copies = np.bincount(self.entry[self.known & self.first], minlength=len(ledger))
        self.open_ledgers = open_ledgers
        self.sent_after = self._sent_after()

    def verdict(self) -> AuditVerdict:
        acknowledged = self.outcome == Outcome.ACKNOWLEDGED
        unknown = self.outcome == Outcome.UNKNOWN
        absent = acknowledged & ~self._arrived_at_its_place()
        in_ledger = {Kind.MISSING: absent & ~self.malformed, Kind.QUARANTINE_MISSING: absent & self.malformed}
        in_rows = {
            Kind.DOUBLED: ~self.first,
            Kind.ALTERED: self.known & self.first & self._differs(),
            Kind.MISPLACED: self.known & self.first & self._misplaced(),
            Kind.UNEXPECTED: self.first & self._unexpected(),
        }
        allowed = self.known & self.first & ~in_rows[Kind.UNEXPECTED]
        copies_allowed = np.bincount(self.entry[allowed], minlength=len(self.ledger))
        counts = {kind: int(mask.sum()) for kind, mask in (in_ledger | in_rows).items()}
        return AuditVerdict(
            missing=counts[Kind.MISSING],
            quarantine_missing=counts[Kind.QUARANTINE_MISSING],
            doubled=counts[Kind.DOUBLED],
            altered=counts[Kind.ALTERED],
            misplaced=counts[Kind.MISPLACED],
            unexpected=counts[Kind.UNEXPECTED],
            acknowledged=int(acknowledged.sum()),
            failed=int((self.outcome == Outcome.FAILED).sum()),
            unknown=int(unknown.sum()),
            unknown_arrived=int((unknown & (self.copies > 0)).sum()),
            producer_duplicates=int(np.maximum(copies_allowed - 1, 0).sum()),
            rows=len(self.rows),
            quarantined=int(_mask(self.rows["quarantined"]).sum()),
            findings=(*_findings(self.ledger, in_ledger), *_findings(self.rows, in_rows)),
            open_ledgers=tuple(map(self._seen, range(len(self.open_ledgers)))),
        )

    def _sent_after(self) -> Numbers:
        """For each row, the number of the open ledger whose worker sent its event, which no ledger names; or -1.

        Not by whether its own number is above all that are noted: late events are sent after others that are newer.
        """
        after = np.full(len(self.rows), -1, dtype=np.int64)
        if not self.open_ledgers:
            return after
        numbers = {ledger.prefix: number for number, ledger in enumerate(self.open_ledgers)}
        nobodys = np.flatnonzero(~self.known & self.first)
        event_ids = self.rows["event_id"].take(pa.array(nobodys)).to_pylist()
        for row, event_id in zip(nobodys, event_ids, strict=True):
            prefix, _, counter = (event_id or "").rpartition("-")
            if counter.isdecimal():
                after[row] = numbers.get(prefix, -1)
        return after

    def _seen(self, number: int) -> OpenLedgerSeen:
        ledger = self.open_ledgers[number]
        mine = slice(ledger.rows.start, ledger.rows.stop)
        unsettled = self.attempts[mine] < 0
        return OpenLedgerSeen(
            ledger.name,
            unsettled=int(unsettled.sum()),
            absent=int((unsettled & (self.copies[mine] == 0)).sum()),
            sent_after=int((self.sent_after == number).sum()),
        )

    def _of_entry(self, column: str) -> pa.ChunkedArray:
        """For each row, the ledger's value of its event; that of any event if it is in no ledger."""
        if not len(self.ledger):
            return pa.chunked_array([pa.nulls(len(self.rows), self.ledger.schema.field(column).type)])
        return self.ledger[column].take(pa.array(self.entry))

    def _arrived_at_its_place(self) -> Mask:
        same_shard = pc.equal(self.rows["shard_id"], self._of_entry("shard_id"))
        same_sequence = pc.equal(self.rows["sequence_number"], self._of_entry("sequence_number"))
        at_place = self.known & _mask(pc.fill_null(pc.and_(same_shard, same_sequence), False))
        arrived = np.zeros(len(self.ledger), dtype=np.bool_)
        arrived[self.entry[at_place]] = True
        return arrived

    def _differs(self) -> Mask:
        return _mask(pc.fill_null(pc.not_equal(self.rows["checksum"], self._of_entry("checksum")), True))

    def _misplaced(self) -> Mask:
        return _mask(pc.fill_null(pc.not_equal(self.rows["quarantined"], self._of_entry("malformed")), True))

    def _unexpected(self) -> Mask:
        # Entries whose worker was killed (attempts -1) may have any number of copies.
        limit = np.where(self.attempts < 0, np.iinfo(np.int64).max, self.attempts)
        limit = np.where(self.outcome == Outcome.FAILED, 0, limit)
        nobodys = ~self.known & (self.sent_after < 0)
        if not len(self.ledger):
            return nobodys
        return nobodys | (self.known & (self._copy_number() > limit[self.entry]))

    def _copy_number(self) -> Numbers:
        """For each first row of a record: the how-manieth record of its event it is, from 1."""
        number = np.zeros(len(self.rows), dtype=np.int64)
        counted = np.flatnonzero(self.known & self.first)
        order = counted[np.argsort(self.entry[counted], kind="stable")]
        entries = self.entry[order]
        starts = np.flatnonzero(np.r_[True, entries[1:] != entries[:-1]]) if len(entries) else entries
        lengths = np.diff(np.r_[starts, len(entries)])
        number[order] = np.arange(len(entries)) - np.repeat(starts, lengths) + 1
        return number


def _first_of_each(rows: pa.Table) -> Mask:
    """True for the first row of each shard, sequence and sub-sequence number."""
    shard, sequence = _codes(rows["shard_id"]), _codes(rows["sequence_number"])
    sub = _codes(rows["sub_sequence"])
    key = (sequence * (shard.max(initial=0) + 1) + shard) * (sub.max(initial=0) + 1) + sub
    first = np.zeros(len(rows), dtype=np.bool_)
    first[np.unique(key, return_index=True)[1]] = True
    return first


def _codes(column: pa.ChunkedArray) -> Numbers:
    encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of no rows
        return np.zeros(0, dtype=np.int64)
    codes: Numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _mask(values: pa.ChunkedArray | pa.Array) -> Mask:
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    mask: Mask = values.to_numpy().astype(np.bool_)
    return mask


def _findings(table: pa.Table, masks: Mapping[Kind, Mask]) -> list[Finding]:
    findings = []
    for kind, mask in masks.items():
        for row in table.take(pa.array(np.flatnonzero(mask)[:_SAMPLES])).to_pylist():
            findings.append(Finding(kind, row["event_id"], row["shard_id"], row["sequence_number"]))
    return findings
