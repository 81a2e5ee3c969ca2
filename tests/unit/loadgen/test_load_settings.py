"""What a load is asked for, held against what it can be."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pytest

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.settings import add_arguments, load_settings, settings_with

NOT_ITS_TYPE = {float: "much", int: "1.5"}


class PlainParser(ArgumentParser):
    """Locust's takes more; and to import that turns all sockets of this process into gevent's."""

    def __init__(self) -> None:
        super().__init__()
        self.on_the_page: dict[str, type] = {}

    def add_argument(self, *names: str, **more: Any) -> Any:
        more.pop("env_var", None)
        in_page = more.pop("include_in_web_ui", True)
        action = super().add_argument(*names, **more)
        if in_page and "type" in more:
            self.on_the_page[action.dest] = more["type"]
        return action


@pytest.fixture(scope="module")
def parser() -> PlainParser:
    parser = PlainParser()
    add_arguments(parser)
    return parser


@pytest.fixture(scope="module")
def options(parser: PlainParser) -> Namespace:
    return parser.parse_args([])


def test_a_form_changes_what_it_names(options: Namespace) -> None:
    form = {"events": "250.5", "stream": "clicks", "customers": "7", "run_time": "1m", "user_count": "5"}
    settings = settings_with(options, form)
    assert (settings.stream, settings.shape.peak, settings.mix.customers) == ("clicks", 250.5, 7)
    assert options.stream == "orders", "the run that goes on keeps its own"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("", None),
        ("ledger/", "ledger"),
        ("file:///tmp/ledger", "/tmp/ledger"),
        ("FILE:/tmp/ledger", "/tmp/ledger"),
        ("file:///tmp/a#b?c", "/tmp/a#b?c"),
        ("2026-01-31T12:30", "2026-01-31T12:30"),
    ],
)
def test_a_ledger_is_written_to_a_folder(parser: PlainParser, text: str, folder: str | None) -> None:
    settings = load_settings(parser.parse_args(["--ledger", text]))
    assert settings.ledger == (None if folder is None else Path(folder))


@pytest.mark.parametrize(
    "text", ["s3://lake/_ledger", "s3a://lake", "gs://lake/x", "s3:/lake", "https://x/y", "file://x"]
)
def test_a_ledger_somewhere_else_is_refused_with_the_way_there(parser: PlainParser, text: str) -> None:
    """It was written to a folder `s3:` of this machine."""
    with pytest.raises(
        SettingsError, match=r"ledger: .* is not a folder of this machine; .*lakestream ledger ship"
    ) as told:
        load_settings(parser.parse_args(["--ledger", text]))
    assert text in str(told.value)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"events": "much"}, "events: 'much' is not a number"),
        ({"events": "0"}, "events: 0.0 records/s is not above 0"),
        ({"events": "inf"}, "events: inf is no number"),
        ({"linger": "nan"}, "linger: nan is no number"),
        ({"zipf": "nan"}, "zipf: nan is no number"),
        ({"max_lateness": "inf"}, "max_lateness: inf is no number"),
        ({"seed": "1.5"}, "seed: '1.5' is not a whole number"),
        ({"customers": "1000000000"}, "customers: 1000000000 is more than 10,000,000"),
        ({"connections": "0"}, "connections: 0 is not between 1 and 1,000"),
        ({"connections": "100000"}, "connections: 100000 is not between 1 and 1,000"),
        ({"shape": "circle"}, "shape: 'circle' is not one of"),
        ({"stream": ""}, "stream: give the name"),
        (
            {"stream": "arn:aws:kinesis:us-east-1:123456789012:stream/orders"},
            "is no name of a Kinesis stream; give that alone: orders",
        ),
        ({"stream": "orders\n"}, r"stream: 'orders\n' is no name"),
        ({"stream": 'or"ders'}, "stream: 'or\"ders' is no name"),
        ({"stream": "o" * 129}, "o' is no name of a Kinesis stream"),
        ({"inserts": "0.7", "deletes": "0.7"}, "the shares add up to more than 1"),
    ],
)
def test_what_cannot_be_is_named(options: Namespace, form: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_with(options, form)
    assert told in str(refused.value)


def test_each_number_of_the_page_is_looked_at(parser: PlainParser, options: Namespace) -> None:
    numbers = [(name, kind) for name, kind in parser.on_the_page.items() if kind is not str]
    assert len(numbers) == 12
    for name, kind in numbers:
        with pytest.raises(SettingsError, match=f"^{name}: "):
            settings_with(options, {name: NOT_ITS_TYPE[kind]})
