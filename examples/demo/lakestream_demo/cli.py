"""`lakestream demo`."""

from __future__ import annotations

import errno
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakestream_api import parse_duration
from lakestream_demo.errors import ChildFailedError, DemoError, InterruptedDemoError, SettingError, WorkspaceError
from lakestream_demo.settings import DEFAULT_EVENTS, DEFAULT_SHARDS, DEFAULT_USERS, DemoSettings, Lake, Table

if TYPE_CHECKING:
    from rich.console import Console

    from lakestream_demo.interrupt import Interrupt
    from lakestream_demo.result import DemoResult

EXIT_AUDIT = 1
"""The lake is not what was sent."""
EXIT_SETTINGS = 2
"""An option cannot be used; the same number as for a wrong command line."""
EXIT_BROKEN = 3
"""The demo could not be carried out."""

FULL = (errno.ENOSPC, errno.EDQUOT)
LITTLE_BYTES = 1 << 20
"""A disk with less is full."""

WIDTH = 120
"""Columns of what goes to a file or a pipe."""

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def demo(
    events: Annotated[int, typer.Option(help="Events per second that all users together send.")] = DEFAULT_EVENTS,
    shards: Annotated[int, typer.Option(help="Shards of the stream.")] = DEFAULT_SHARDS,
    table: Annotated[Table, typer.Option(help="Type of the Hudi table.")] = Table.MOR,
    duration: Annotated[str, typer.Option(help="How long the users send, as in 90s or 5m.")] = "60s",
    lake: Annotated[Lake, typer.Option(help="A local folder, or an S3 server of the demo's own.")] = Lake.LOCAL,
    users: Annotated[int, typer.Option(help="Locust users.")] = DEFAULT_USERS,
    out: Annotated[Path, typer.Option(help="Folder for everything that the run makes.")] = Path(".demo"),
) -> None:
    """Run Kinesis, users and both applications on this machine for a minute, then audit the lake.

    The exit status is 0 if the audit passed, 1 if it failed, 2 for a wrong option, 3 if the demo broke.
    """
    # Only now: all commands are imported whenever one of them is called.
    from rich.console import Console

    from lakestream.command import leave_unwritten
    from lakestream_demo.interrupt import Interrupt
    from lakestream_demo.report import draw_report

    console, errors = Console(highlight=False), Console(highlight=False, stderr=True)
    for each in (console, errors):
        if not each.is_terminal:
            each.width = WIDTH
    interrupt = Interrupt()
    try:
        with interrupt.installed():
            settings = _settings(events, shards, table, duration, lake, users, out)
            result = run_demo(settings, interrupt, console)
        console.print(draw_report(result, str(out)))
    except DemoError as error:
        _explain(errors, error, out)
        raise typer.Exit(_status(error)) from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        leave_unwritten()
        _explain(errors, DemoError(str(error)), out)
        raise typer.Exit(EXIT_BROKEN) from error
    if not result.passed:
        raise typer.Exit(EXIT_AUDIT)


def run_demo(settings: DemoSettings, interrupt: Interrupt, console: Console) -> DemoResult:
    """Run the demo, and show it meanwhile. Whatever happens, no process of it is left.

    Raises:
        DemoError: it could not be carried out, or was interrupted.
    """
    from lakestream_demo.demo import Run
    from lakestream_demo.processes import Supervisor
    from lakestream_demo.screen import open_screen
    from lakestream_demo.workspace import fresh_workspace

    headline = (
        f"LakeStream demo: {settings.users:,} users → Kinesis, {settings.shards} shards → "
        f"Hudi ({settings.table.table_type}) and JSON, {settings.events:,} events/s"
    )
    with fresh_workspace(settings.out) as workspace, Supervisor(workspace.logs, interrupt) as supervisor:
        if settings.warning:
            console.print(f"Note: {settings.warning}", style="yellow")
        with open_screen(console, headline) as screen:
            return Run(settings, workspace, supervisor, interrupt, screen).run()


def _settings(events: int, shards: int, table: Table, duration: str, lake: Lake, users: int, out: Path) -> DemoSettings:
    try:
        length = parse_duration(duration)
    except ValueError as error:
        raise SettingError(f"DURATION: {error}") from error
    return DemoSettings(out.absolute(), length, events, shards, users, table, lake)


def _explain(console: Console, error: DemoError, out: Path) -> None:
    from rich.text import Text

    logs = f"Logs: {out / 'logs'}"
    if isinstance(error, InterruptedDemoError):
        name = signal.Signals(error.signal_number).name
        console.print(f"Stopped by {name}; nothing is left running. {logs}", style="yellow", soft_wrap=True)
        return
    console.print(Text(str(error)), style="bold red", soft_wrap=True)
    if isinstance(error, ChildFailedError):
        for line in error.tail:
            console.print(Text(f"  {line}"), style="dim", soft_wrap=True)
    if advice := _full_disk(out) or error.advice:
        console.print(Text(advice), soft_wrap=True)
    if not isinstance(error, SettingError | WorkspaceError):
        console.print(f"Nothing is left running. {logs}", soft_wrap=True)


def _full_disk(out: Path) -> str:
    """What to do about it, if it is: a child cannot say so, its log is cut off as well."""
    with suppress(OSError):
        if shutil.disk_usage(out).free < LITTLE_BYTES:
            return f"The disk of {out} is full: free some room, or choose another folder with --out."
    return ""


def _status(error: DemoError) -> int:
    if isinstance(error, InterruptedDemoError):
        return 128 + error.signal_number
    return EXIT_SETTINGS if isinstance(error, SettingError | WorkspaceError) else EXIT_BROKEN
