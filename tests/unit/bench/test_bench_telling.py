"""How far a benchmark is: on stderr, since stdout is for its figures."""

from __future__ import annotations

import re

import pytest

from lakestream_bench._telling import Telling


def test_each_measurement_is_told_when_it_begins_and_when_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    telling = Telling(2)
    for what in ("json, from a backlog", "json, at a steady rate"):
        with telling.measuring(what):
            pass
    told = capsys.readouterr()
    assert told.out == ""
    assert re.sub(r"\d+ s", "N s", told.err).splitlines() == [
        "1 of 2  json, from a backlog  (N s so far)",
        "1 of 2  json, from a backlog: done in N s  (N s so far)",
        "2 of 2  json, at a steady rate  (N s so far)",
        "2 of 2  json, at a steady rate: done in N s  (N s so far)",
    ]


def test_a_measurement_that_fails_is_not_told_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), Telling(1).measuring("json"):
        _ = 1 / 0
    assert "done" not in capsys.readouterr().err
