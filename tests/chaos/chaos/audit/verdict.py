"""The verdict: pure. Two histories go in, what differs comes out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from operator import itemgetter
from types import MappingProxyType

from chaos.events import DELETES, KEY, ORDERING, Fate, Row, Sent
from chaos.ledger import Truth, Where

assert DELETES == "op = 'd'"  # what `fold` does by hand

_SAMPLES = 5


@dataclass(frozen=True)
class Reject:
    """A record in quarantine."""

    where: Where
    data: bytes
    origin: Row = field(default_factory=dict)
    """As `Truth` has it."""


@dataclass(frozen=True)
class Found:
    """What was read of a lake."""

    rows: list[tuple[Where, Row]]
    quarantine: list[Reject]


@dataclass
class Verdict:
    """How often what went wrong; the samples are for a person."""

    records: int = 0
    rows: int = 0
    quarantined: int = 0
    skipped: int = 0
    """Gone from the stream before they were read, as the document allows and a driver has told."""
    lost: int = 0
    doubled: int = 0
    altered: int = 0
    foreign: int = 0
    """What no record of the stream made: a row that was deleted counts, an older version as well."""
    samples: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.lost == self.doubled == self.altered == self.foreign == 0

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    def tell(self, kind: str, where: object, *details: object) -> None:
        """Count a fault."""
        count = getattr(self, kind) + 1
        setattr(self, kind, count)
        if count <= _SAMPLES:
            self.samples.append(f"{kind}: {where}: {' '.join(map(_short, details))}")


def judge(truth: Truth, found: Found, *, keyed: bool) -> Verdict:
    """Compare a lake with its stream.

    Args:
        truth: each record of the stream.
        found: rows and quarantine.
        keyed: the table keeps the newest version of each key, and not every record.
    """
    verdict = Verdict(len(truth.sent), len(found.rows), len(found.quarantine))
    kept = _quarantine(truth, found.quarantine, verdict)
    rows = {where: sent for where, sent in truth.sent.items() if sent.fate.may_be_row and where not in kept}
    everything: dict[object, dict[Where, Sent]] = {where: {where: sent} for where, sent in rows.items()}
    wanted = fold(rows, is_in_order=truth.is_in_order) if keyed else everything
    seen: defaultdict[object, list[tuple[Where, Row]]] = defaultdict(list)
    for where, row in found.rows:
        seen[key_of(row) if keyed else where].append((where, row))
    for identity, choice in wanted.items():
        if identity in seen:
            continue
        where, sent = next(iter(choice.items()))
        if where in truth.skippable:
            verdict.skipped += 1
        else:
            verdict.tell("lost", where, sent.kind, "is in no row", sent.data)
    for identity, copies in seen.items():
        if identity not in wanted:
            verdict.tell("foreign", identity, f"{len(copies)} times", *copies[0])
            continue
        _compare(truth, wanted[identity], identity, copies, verdict)
    return verdict


def _compare(
    truth: Truth,
    choice: Mapping[Where, Sent],
    identity: object,
    copies: Sequence[tuple[Where, Row]],
    verdict: Verdict,
) -> None:
    """Judge the rows of one record, or key, that may come from any of these."""
    where, sent = next(iter(choice.items()))
    if len(copies) > 1:
        verdict.tell("doubled", identity, sent.kind, f"is there {len(copies)} times:", [at for at, _ in copies])
    for at, row in copies:
        if at not in choice:
            verdict.tell("altered", where, sent.kind, f"comes from {at}")
        elif differing := differences(choice[at], row, truth.origin(at)):
            verdict.tell("altered", at, sent.kind, differing)


def misnamed(named: Mapping[str, int], found: Mapping[str, int]) -> list[str]:
    """What who goes by the log would read otherwise than who lists the folder.

    Args:
        named: by the log, each file and its rows.
        found: in the folder.
    """
    pairs = ((file, named.get(file), found.get(file)) for file in sorted(named.keys() | found.keys()))
    return [f"{file} has {there} rows, by the log {by_log}" for file, by_log, there in pairs if by_log != there]


def fold(rows: Mapping[Where, Sent], *, is_in_order: bool = True) -> dict[object, dict[Where, Sent]]:
    """By key the record with the highest version, unless that is a delete.

    Of several with that version it is the last one of its shard; of several shards nobody knows which came last.

    Args:
        rows: what may be in the table.
        is_in_order: as `Truth` says.
    """
    newest: dict[object, dict[Where, Sent]] = {}
    for where, sent in sorted(rows.items(), key=itemgetter(0)):
        assert sent.row is not None
        choice = newest.setdefault(key_of(sent.row), {})
        highest = max(map(_version, choice.values()), default=_version(sent))
        if _version(sent) < highest:
            continue
        outdone = [at for at in choice if _version(sent) > highest or (is_in_order and at[0] == where[0])]
        for at in outdone:
            del choice[at]
        choice[where] = sent
    return {
        key: choice
        for key, choice in newest.items()
        if not any(is_delete(one.row) for one in choice.values() if one.row)
    }


def differences(sent: Sent, row: Row, origin: Row = MappingProxyType({})) -> dict[str, tuple[object, object]]:
    """Columns that do not say what was sent: what they should say, and what they do. Numbers are compared by value."""
    assert sent.row is not None
    expected = {"rescued": None, **sent.row, **origin}
    return {
        name: (value, row.get(name))
        for name, value in expected.items()
        if (Decimal(str(value)) != Decimal(str(row.get(name))) if _is_number(name, row) else value != row.get(name))
    }


def _quarantine(truth: Truth, found: Iterable[Reject], verdict: Verdict) -> set[Where]:
    """Judge the quarantine; returns what may be there and is."""
    sent = truth.sent
    copies: defaultdict[Where, list[Reject]] = defaultdict(list)
    for one in found:
        copies[one.where].append(one)
    for where, record in sent.items():
        if record.fate is not Fate.QUARANTINE or where in copies:
            continue
        if where in truth.skippable:
            verdict.skipped += 1
        else:
            verdict.tell("lost", where, record.kind, "is not in quarantine", record.data)
    kept = set()
    for where, rejects in copies.items():
        if where not in sent:
            verdict.tell("foreign", where, "in quarantine", rejects[0].data)
            continue
        if not sent[where].fate.may_be_quarantined:
            verdict.tell("foreign", where, sent[where].kind, "is in quarantine", rejects[0].data)
        else:
            kept.add(where)
        _count(truth, where, rejects, verdict)
    return kept


def _count(truth: Truth, where: Where, rejects: Sequence[Reject], verdict: Verdict) -> None:
    """Judge the copies of one record in quarantine."""
    sent, again = truth.sent[where], truth.again.get(where[:2], 0)
    times = len(rejects)
    if times > truth.readings:
        verdict.tell("doubled", where, sent.kind, f"is in quarantine {times} times")
    elif sent.fate is Fate.QUARANTINE and times <= again:
        verdict.tell("lost", where, sent.kind, f"was to be read again {again} times, and is there {times} times")
    if any(one.data != sent.data for one in rejects):
        verdict.tell("altered", where, sent.kind, "has other bytes in quarantine", rejects[0].data)
    if others := [one.origin for one in rejects if not truth.origin(where).items() <= one.origin.items()]:
        verdict.tell("altered", where, sent.kind, "in quarantine is from", others[0], "and not", truth.origin(where))


def _is_number(name: str, row: Row) -> bool:
    return name == "amount" and row.get(name) is not None


def key_of(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in KEY)


def _version(sent: Sent) -> int:
    assert sent.row is not None
    return version_of(sent.row)


def is_delete(row: Row) -> bool:
    return row["op"] == "d"


def version_of(row: Row) -> int:
    version = row[ORDERING]
    assert isinstance(version, int)
    return version


def _short(detail: object) -> str:
    return str(detail)[:300]
