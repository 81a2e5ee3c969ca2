"""Settings of a load run, from Locust's custom arguments."""

from __future__ import annotations

import math
import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.events import EventMix
from lakestream_loadgen.shapes import SHAPES, Shape, make_shape

MOST_CONNECTIONS = 1_000
"""Each is a greenlet with a socket of its own."""
MOST_CUSTOMERS = 10_000_000
"""The popularity of each is kept: 8 bytes."""


@dataclass(frozen=True)
class LoadSettings:
    """What to write, how fast, and where to note it."""

    stream: str
    shape: Shape
    mix: EventMix
    seed: int
    ledger: Path | None
    """Folder of the ledgers; None writes none, and then nothing can be audited."""
    linger: float
    """Seconds that a record may wait for others to share its request."""
    connections: int
    """PutRecords calls that a process has under way at a time."""


class _Option(NamedTuple):
    name: str
    kind: type
    default: object
    help: str
    more: Mapping[str, object] = MappingProxyType({})

    @property
    def dest(self) -> str:
        """As parsed options and the page's form have it."""
        return self.name.replace("-", "_")


_OPTIONS = (
    _Option("stream", str, "orders", "Name of the Kinesis stream"),
    _Option("events", float, 1000.0, "Events per second of all workers together, at the shape's peak"),
    _Option("shape", str, "constant", "Load over time", {"choices": list(SHAPES)}),
    _Option("shape-period", float, 300.0, "Seconds of one period of the shape"),
    _Option("seed", int, 1, "Seed of the events: the same seed gives the same orders"),
    _Option(
        "ledger", str, "", "Folder for the ledger of acknowledged events (none: no audit)", {"include_in_web_ui": False}
    ),
    _Option("inserts", float, EventMix.inserts, "Share of inserts"),
    _Option("deletes", float, EventMix.deletes, "Share of deletes"),
    _Option("late", float, EventMix.late, "Share of late events"),
    _Option("max-lateness", float, EventMix.max_lateness, "Seconds that late events are late, at most"),
    _Option("malformed", float, EventMix.malformed, "Share of malformed events"),
    _Option("customers", int, EventMix.customers, "Number of partition keys"),
    _Option("zipf", float, EventMix.zipf, "Skew of the partition keys: 0 is uniform, 1.2 makes hot shards"),
    _Option("linger", float, 0.05, "Seconds that a record may wait for others in its request"),
    _Option("connections", int, 16, "Requests under way per process"),
)
_USERS = {"user_count": ("num_users", int), "spawn_rate": ("spawn_rate", float)}
"""Locust's own, by their names in the page's form: as options, and what they are."""
NO_HOST = "where records go is said by AWS_ENDPOINT_URL_KINESIS and the region alone"
"""Locust takes one, and nothing would go there."""
_STREAM = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
_WEB_HOST = "LOCUST_WEB_HOST"
_URI = re.compile(r"([A-Za-z][\w+.-]*):(?://[^/]*)?(/.*|)", re.DOTALL)
_NUMBERS = {float: "a number", int: "a whole number"}


def add_arguments(parser: ArgumentParser) -> None:
    """Declare our arguments to Locust; each can be given as an environment variable too, and in the web page.

    That page, which starts load without asking who you are, is for this machine alone unless somebody says otherwise.
    """
    for name, kind, default, text, more in _OPTIONS:
        env_var = f"LAKESTREAM_{name.upper().replace('-', '_')}"
        parser.add_argument(f"--{name}", type=kind, default=default, help=text, env_var=env_var, **more)  # type: ignore[arg-type]
    parser.set_defaults(web_host="127.0.0.1")
    # Empty, as of a variable that is not set, it says nothing, and Locust would take it for all interfaces.
    if not os.environ.get(_WEB_HOST):
        os.environ.pop(_WEB_HOST, None)


def load_settings(options: Namespace) -> LoadSettings:
    """Check Locust's parsed options.

    Raises:
        SettingsError: a value is out of its range; the message names the argument.
    """
    if not options.stream:
        raise SettingsError("stream: give the name of a Kinesis stream")
    if not _STREAM.fullmatch(options.stream):
        _, is_arn, named = options.stream.rpartition(":stream/")
        hint = f"; give that alone: {named}" if is_arn else ""
        raise SettingsError(f"stream: {options.stream!r} is no name of a Kinesis stream{hint}")
    for option in _OPTIONS:
        if option.kind is float and not math.isfinite(value := getattr(options, option.dest)):
            raise SettingsError(f"{option.dest}: {value} is no number to count with")
    if options.linger < 0 or options.seed < 0:
        raise SettingsError("linger and seed must not be negative")
    if not 1 <= options.connections <= MOST_CONNECTIONS:
        raise SettingsError(f"connections: {options.connections} is not between 1 and {MOST_CONNECTIONS:,}")
    if options.customers > MOST_CUSTOMERS:
        raise SettingsError(f"customers: {options.customers} is more than {MOST_CUSTOMERS:,}")
    _require_users(options)
    return LoadSettings(
        stream=options.stream,
        shape=make_shape(options.shape, options.events, options.shape_period),
        mix=EventMix(
            inserts=options.inserts,
            deletes=options.deletes,
            late=options.late,
            malformed=options.malformed,
            max_lateness=options.max_lateness,
            customers=options.customers,
            zipf=options.zipf,
        ),
        seed=options.seed,
        ledger=_folder(options.ledger) if options.ledger else None,
        linger=options.linger,
        connections=options.connections,
    )


def _require_users(options: Namespace) -> None:
    """Locust looks at these only where no shape says how many users there are; with others nothing would be written."""
    users, spawn_rate = getattr(options, "num_users", None), getattr(options, "spawn_rate", None)
    if users is not None and users < 1:
        raise SettingsError(f"users: {users} is below 1")
    if spawn_rate is not None and not 0 < spawn_rate < math.inf:
        raise SettingsError(f"spawn-rate: {spawn_rate} users per second is not above 0, or no number to count with")


def _folder(text: str) -> Path:
    """Of the ledger; a path, or a file: URI."""
    found = _URI.fullmatch(text)
    if found is None:
        return Path(text)
    scheme, path = found.groups()
    if scheme.lower() == "file" and path:
        return Path(path)
    raise SettingsError(
        f"ledger: {text} is not a folder of this machine; give one, and have `lakestream ledger ship FOLDER s3://…` "
        "copy what is written to it while it grows"
    )


def settings_with(options: Namespace, form: Mapping[str, str]) -> LoadSettings:
    """The settings of options with a form's values in place of some.

    Raises:
        SettingsError: a value is no number where there is one now, or out of its range.
    """
    return load_settings(Namespace(**{**vars(options), **_told(form)}))


def changed_by(options: Namespace, form: Mapping[str, str]) -> list[str]:
    """Names of the options of ours to which a form gives other values."""
    told = _told(form)
    return [one.dest for one in _OPTIONS if one.dest in told and told[one.dest] != getattr(options, one.dest)]


def _told(form: Mapping[str, str]) -> dict[str, object]:
    """A form's values, by the names of options."""
    fields = {option.dest: (option.dest, option.kind) for option in _OPTIONS} | _USERS
    told: dict[str, object] = {}
    for field, (name, kind) in fields.items():
        text = form.get(field)
        if text is not None:
            try:
                told[name] = kind(text)
            except ValueError as error:
                raise SettingsError(f"{field}: {text!r} is not {_NUMBERS[kind]}") from error
    return told
