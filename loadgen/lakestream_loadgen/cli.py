"""``lakestream load``, ``lakestream audit`` and ``lakestream ledger``."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from lakestream_loadgen.errors import LakeError, LedgerError, LoadgenError

if TYPE_CHECKING:
    import pyarrow as pa

    from lakestream_loadgen.ledger.reader import Ledgers

logger = logging.getLogger(__name__)


class _LocustCommand(TyperGroup):
    """No group of commands: everything after ``load``, ``--help`` too, is for Locust."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def invoke(self, ctx: Any) -> NoReturn:
        # Locust tells of its own options, and ends, before it has looked at ours.
        if {"-h", "--help"}.intersection(ctx.args):
            os.execv(sys.executable, [sys.executable, "-m", "lakestream_loadgen.options"])
        # Replaced rather than started: signals, and the exit status, are then Locust's own.
        locustfile = Path(__file__).with_name("locustfile.py")
        os.execv(sys.executable, [sys.executable, "-m", "locust", "-f", str(locustfile), *ctx.args])


load_app = typer.Typer(
    cls=_LocustCommand,
    help="Write order events to a Kinesis stream with Locust; takes Locust's options and those of our users.",
    add_completion=False,
)
audit_app = typer.Typer(help="Hold a lake against the ledger of what was acknowledged.", add_completion=False)

ledger_app = typer.Typer(help="Keep the ledgers of load workers.", no_args_is_help=True, add_completion=False)


@load_app.callback(invoke_without_command=True)
def load() -> None:
    """Write order events to a Kinesis stream with Locust; takes Locust's options and those of our users."""


@audit_app.callback(invoke_without_command=True)
def audit_command(  # noqa: PLR0913, PLR0917 - options of a command
    ledger: Annotated[str, typer.Option(help="Folder or s3:// prefix of the ledger.")],
    json: Annotated[str, typer.Option(help="Folder or s3:// prefix of the JSON table.")],
    quarantine: Annotated[str | None, typer.Option(help="Folder or s3:// prefix of the quarantine.")] = None,
    snapshot: Annotated[
        str | None,
        typer.Option(help="Folder or s3:// prefix of a Parquet dump of a table kept by upserts and deletes."),
    ] = None,
    stream: Annotated[str | None, typer.Option(help="Only the ledgers of this stream.")] = None,
    files: Annotated[
        Path | None, typer.Option(help="The JSON files that count, one a line, as `lakestream files` prints them.")
    ] = None,
    quarantine_files: Annotated[
        Path | None, typer.Option(help="Those of the quarantine, as `lakestream files --quarantine` prints them.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the verdict here as JSON.")] = None,
    allow_open_ledgers: Annotated[
        bool,
        typer.Option("--allow-open-ledgers", help="Ledgers without an end are of killed workers, and lack nothing."),
    ] = False,
) -> None:
    """Exit status: 0 nothing missing, doubled or altered; 1 something is; 2 no, or not all, could be audited."""
    # Here, since `load` needs none of it, and Arrow takes a while to import.
    from lakestream_loadgen.audit import audit, compare, fold, read_json_lake, read_parquet
    from lakestream_loadgen.audit.lake import JSON_FILES, require_files
    from lakestream_loadgen.audit.report import exit_status, report_json, report_text
    from lakestream_loadgen.ledger.reader import read_ledgers

    try:
        kept = _kept(quarantine, quarantine_files)
        rows = read_json_lake(json, _listed(files, json))
        ledgers = read_ledgers(ledger, stream=stream)
        verdict = audit(ledgers.entries, rows, kept, open_ledgers=ledgers.open, allow_open_ledgers=allow_open_ledgers)
        if verdict.ok and not verdict.acknowledged:
            raise LedgerError(f"by the ledgers under {ledger} no record was written: there is nothing to audit")
        _require_one_stream(ledgers, ledger, verdict.missing)
        compared = None if snapshot is None else compare(fold(rows), read_parquet(snapshot))
        require_files(json, files, verdict.missing, JSON_FILES)
        require_files(quarantine, quarantine_files, verdict.quarantine_missing)
        require_files(snapshot, None, compared.missing if compared else 0)
        typer.echo(report_text(verdict, compared))
        if report is not None:
            _write(report, report_json(verdict, compared))
    # Whatever it is, Python would end with 1, which says that the lake is wrong.
    except Exception as error:
        if not isinstance(error, LoadgenError | OSError | ValueError):
            traceback.print_exc()
        typer.echo(f"lakestream audit: {error}", err=True)
        raise typer.Exit(2) from error
    raise typer.Exit(exit_status(verdict, compared))


def _kept(quarantine: str | None, files: Path | None) -> pa.Table | None:
    """The unusable records; None: nobody has named a quarantine."""
    from lakestream_loadgen.audit import read_quarantine

    if quarantine is not None:
        return read_quarantine(quarantine, _listed(files, quarantine))
    if files is not None:
        raise LakeError("--quarantine-files goes with --quarantine, the folder that these files are in")
    return None


def _require_one_stream(ledgers: Ledgers, location: str, missing: int) -> None:
    if missing and len(ledgers.streams) > 1:
        several = ", ".join(sorted(ledgers.streams))
        raise LedgerError(f"the ledgers under {location} are of several streams: say which by --stream ({several})")


def _write(report: Path, content: bytes) -> None:
    try:
        report.write_bytes(content)
    except OSError as error:
        raise LakeError(f"--report {report} cannot be written: {error.strerror}") from error


def _listed(files: Path | None, location: str) -> list[str] | None:
    """Paths below a location, of a list of files; None: all files count."""
    from lakestream_loadgen.storage import below

    if files is None:
        return None
    try:
        text = files.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is no text: {error}"
        raise LakeError(f"{files}, the list of files, cannot be read: {why}") from error
    # Not by `splitlines`: U+2028 and others that it takes for the end of a line may be in the name of a partition.
    return [below(location, line) for line in text.split("\n") if line]


@ledger_app.callback()
def ledger() -> None:
    """Keep the ledgers of load workers."""


@ledger_app.command()
def ship(
    source: Annotated[Path, typer.Argument(help="Folder that workers write their ledgers to.", file_okay=False)],
    target: Annotated[str, typer.Argument(help="s3:// prefix (or folder) to copy them to.")],
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 5.0,
) -> None:
    """Copy growing ledgers to where they outlive this machine, until SIGTERM; then once more, and end."""
    from lakestream_loadgen.ledger.shipping import LedgerShipper
    from lakestream_loadgen.storage import Folder, require_place

    try:
        require_place(target)
        source.mkdir(parents=True, exist_ok=True)
    except LakeError as error:
        raise typer.BadParameter(str(error), param_hint="'target'") from error
    except OSError as error:
        raise typer.BadParameter(f"{source} cannot be made: {error.strerror}", param_hint="'source'") from error
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    shipper: LedgerShipper | None = None
    over = False
    while not over:
        over = ended.wait(every)
        try:
            shipper = shipper or LedgerShipper(source, Folder(target))
            shipper.ship()
        except (LakeError, LedgerError) as error:
            if over:
                typer.echo(f"lakestream ledger: {error}", err=True)
                raise typer.Exit(1) from error
            logger.warning("%s; trying again in %g s", error, every)
