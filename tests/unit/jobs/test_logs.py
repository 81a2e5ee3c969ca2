"""The log of the command: text for people, lines of JSON where programs read it."""

from __future__ import annotations

import json
import logging
import socket
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
import typer
from py4j import protocol
from py4j.java_gateway import GatewayClient
from typer.testing import CliRunner

from lakestream.command import explained
from lakestream.errors import PermanentError
from lakestream.logs import log_to_stderr
from lakestream.main import app
from lakestream.statuses import Exit
from lakestream_api import InvalidDocumentError, Problem
from lakestream_api.names import LOG_FORMAT_VARIABLE


def _log_as(form: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the log up as in a process that has none yet; pytest's has."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    monkeypatch.delenv("LAKESTREAM_LOG_LEVEL", raising=False)
    monkeypatch.delenv(LOG_FORMAT_VARIABLE, raising=False)
    if form is not None:
        monkeypatch.setenv(LOG_FORMAT_VARIABLE, form)
    log_to_stderr()


def test_a_record_is_a_line_of_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _log_as("json", monkeypatch)
    logging.getLogger("lakestream.engine").warning("two\nlines of %s", "orders")
    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["level"], said["logger"], said["message"]) == ("WARNING", "lakestream.engine", "two\nlines of orders")
    assert said["time"].endswith("+00:00")


def test_it_is_text_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _log_as(None, monkeypatch)
    logging.getLogger("lakestream.engine").info("began")
    with pytest.raises(typer.Exit), explained():
        raise PermanentError("the table is another's")
    began, ended = capsys.readouterr().err.splitlines()
    assert began.endswith("INFO lakestream.engine: began")
    assert ended == "lakestream: the table is another's"


def test_how_it_ends_is_a_line_of_json_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _log_as("json", monkeypatch)
    with pytest.raises(typer.Exit) as ended, explained():
        raise PermanentError("the table is another's")
    assert ended.value.exit_code == Exit.PERMANENT
    assert json.loads(capsys.readouterr().err)["message"] == "the table is another's"


def _hang_up(server: socket.socket) -> None:
    server.accept()[0].close()


def test_a_jvm_that_is_gone_is_told_by_who_asked_it_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _log_as(None, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
        client = GatewayClient(address="127.0.0.1", port=port)
        answers = Thread(target=_hang_up, args=(gone,))
        answers.start()
        answer = client.send_command("i\n", retry=False)
        answers.join()
    assert answer == protocol.ERROR
    assert capsys.readouterr().err == ""


def test_the_traceback_of_a_bug_is_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _log_as("json", monkeypatch)
    with pytest.raises(typer.Exit) as ended, explained():
        raise ZeroDivisionError("by nought")
    assert ended.value.exit_code == Exit.FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["error"].splitlines()[-1] == "ZeroDivisionError: by nought"


@pytest.mark.parametrize(
    "error", [PermanentError("no"), InvalidDocumentError([Problem("", "no")]), OSError(28, "no"), ValueError("no")]
)
def test_only_the_command_that_a_container_ends_with_leaves_a_last_word(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody runs in a driver's pod has the driver's environment."""
    left: list[str] = []
    monkeypatch.setattr("lakestream.command.leave_message", left.append)
    for form in (None, "json"):
        _log_as(form, monkeypatch)
        with pytest.raises((typer.Exit, ValueError)), explained():
            raise error
        assert left == []
        with pytest.raises((typer.Exit, ValueError)), explained(is_driver=True):
            raise error
        assert left.pop().endswith("no")


def test_a_driver_leaves_a_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr("lakestream.command.leave_message", left.append)
    monkeypatch.setitem(sys.modules, "lakestream.app", SimpleNamespace(run=None, RunSettings=None))  # with Spark
    (tmp_path / "orders.yaml").write_text("kind: Namespace", "utf-8")
    arguments = ["-f", str(tmp_path / "orders.yaml"), "--writer", "hudi"]
    assert CliRunner().invoke(app, ["quarantine", "list", *arguments]).exit_code == Exit.SETTINGS
    assert left == []
    assert CliRunner().invoke(app, ["ingest", *arguments]).exit_code == Exit.SETTINGS
    assert len(left) == 1


def test_a_level_that_is_none_is_told_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    monkeypatch.setenv("LAKESTREAM_LOG_LEVEL", "trace")
    log_to_stderr()
    assert logging.root.level == logging.INFO
    assert "LAKESTREAM_LOG_LEVEL: 'trace' is no level, so it is INFO; there are: DEBUG, " in capsys.readouterr().err
