"""What a table has been: its commits in order, and which of them a question is about. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lakestream.errors import SettingsError
from lakestream.query.moments import Commit, Moment


@dataclass(frozen=True, slots=True)
class Version:
    """The table as one commit has left it."""

    name: str
    """Hudi's instant, or the number of the batch."""
    at: datetime
    """When the commit was completed: from then on it was seen. Not earlier than that of the version before."""

    def __str__(self) -> str:
        return f"{self.name} ({show(self.at)})"


@dataclass(frozen=True)
class History:
    """The versions of one table that are known, oldest first."""

    versions: tuple[Version, ...]
    first_kept: int = 0
    """The first version whose files are all still there; what older ones alone had, the cleaner has removed."""
    begins: bool = True
    """Whether the first version is the table's first."""
    merges: tuple[str, ...] = ()
    """What came between and changed no row: by such a name the version before it is meant."""
    saved: tuple[str, ...] = ()
    """Those with a savepoint, which keeps files from the cleaner for a restore."""
    kind: str = "instant"
    """What the name of a version is called."""
    kinds: str = "instants"

    def newest(self) -> Version | None:
        """The table as it is; None before the first commit."""
        return self.versions[-1] if self.versions else None

    def as_of(self, moment: Moment, option: str, now: datetime) -> Version:
        """The version that was seen at a moment.

        Args:
            moment: what was asked for.
            option: by which it was, for messages.
            now: the time.

        Raises:
            SettingsError: there was none, or its files are gone; the message says what there is.
        """
        position = self._position(moment, option, now)
        if position < self.first_kept:
            why = "files of that time were cleaned"
            if self.versions[max(position, 0)].name in self.saved:
                why = "a savepoint keeps that for a restore, and no query reads what is older than the last clean kept"
            raise SettingsError(f"{option} {_show(moment)}: {why}; {self.span}")
        return self.versions[position]

    def after(self, moment: Moment, option: str, now: datetime) -> tuple[Version, ...]:
        """The versions that came after the one of a moment; all, if that is before the table's first.

        Raises:
            SettingsError: as `as_of`, except that no files are needed.
        """
        if isinstance(moment, datetime) and self.begins and self.versions and moment < self.versions[0].at:
            return self.versions
        return self.versions[self._position(moment, option, now) + 1 :]

    @property
    def span(self) -> str:
        """What can be asked for, in words."""
        if not self.versions:
            return "the table has no commits yet"
        kept = self.versions[self.first_kept :]
        if len(kept) == 1:
            return f"the only {self.kind} that can be read is {kept[0]}"
        return f"the table can be read as of {len(kept)} {self.kinds}, from {kept[0]} to {kept[-1]}"

    def _position(self, moment: Moment, option: str, now: datetime) -> int:
        if isinstance(moment, Commit):
            return self._named(moment.name, option)
        newest = self.newest()
        if newest is not None and moment > max(newest.at, now):
            raise SettingsError(f"{option} {_show(moment)} has yet to come; it is {show(now)}")
        position = bisect_right([version.at for version in self.versions], moment) - 1
        if position < 0:
            raise SettingsError(f"{option} {_show(moment)} is before what is known of the table: {self.span}")
        return position

    def _named(self, name: str, option: str) -> int:
        names = [version.name for version in self.versions]
        if name in names:
            return names.index(name)
        if name in self.merges:
            return bisect_right(names, name) - 1
        near = [str(self.versions[i]) for i in _around(names, name)]
        raise SettingsError(
            f"{option} {name}: no {self.kind} of the table has that name"
            + (f"; near it are {' and '.join(near)}" if len(near) > 1 else f"; {self.span}")
        )


def show(time: datetime) -> str:
    """A time for people, who may give it back as a moment: with as many digits as it has."""
    fraction = f"{time.microsecond:06}"
    digits = f".{fraction.removesuffix('000')}" if time.microsecond else ""
    return f"{time:%Y-%m-%d %H:%M:%S}{digits} UTC"


def _show(moment: Moment) -> str:
    return moment.name if isinstance(moment, Commit) else show(moment)


def _around(names: Sequence[str], name: str) -> list[int]:
    """Where the neighbours of a name that is not there are."""
    place = sum((len(known), known) < (len(name), name) for known in names)
    return [i for i in (place - 1, place) if 0 <= i < len(names)]
