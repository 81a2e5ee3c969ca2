"""`lakestream kinesis serve`."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import signal
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lakestream_localkinesis.application import Application
from lakestream_localkinesis.core.account import AccountSettings
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.core.ondemand import INITIAL_SHARDS
from lakestream_localkinesis.core.stream import StreamMode
from lakestream_localkinesis.errors import LocalKinesisError, SettingsError
from lakestream_localkinesis.faults import FaultPlan
from lakestream_localkinesis.fields import STREAM_NAME
from lakestream_localkinesis.server import Address, Server, new_event_loop
from lakestream_localkinesis.tls import server_context

logger = logging.getLogger(__name__)

app = typer.Typer(help="A local Kinesis.", no_args_is_help=True, add_completion=False)

ON_DEMAND = "on-demand"
MOST_PORT = 65_535
"""Of a larger number the socket would take the lower 16 bits."""


@app.callback()
def group() -> None:
    """A local Kinesis."""


@dataclass(frozen=True, slots=True)
class InitialStream:
    """A stream to create at the start."""

    name: str
    shards: int
    mode: StreamMode

    @classmethod
    def parse(cls, text: str) -> InitialStream:
        """NAME:SHARDS or NAME:on-demand."""
        name, _, size = text.partition(":")
        if name and (violations := STREAM_NAME.violations(name)):
            raise SettingsError(f"--create-stream: {name!r} is no name of a stream: {', '.join(violations)}")
        if name and size == ON_DEMAND:
            return cls(name, INITIAL_SHARDS, StreamMode.ON_DEMAND)
        if name and re.fullmatch("[0-9]{1,9}", size) and int(size) > 0:
            return cls(name, int(size), StreamMode.PROVISIONED)
        raise SettingsError(f"--create-stream: {text!r} is neither NAME:SHARDS nor NAME:{ON_DEMAND}")


def _folder(text: str) -> Path:
    if not text:
        # As of a variable that is not set; taken as a path it is the working folder.
        raise typer.BadParameter("it is empty; give a folder")
    return Path(text)


def _folder_option(meaning: str) -> Any:
    return typer.Option(metavar="FOLDER", parser=_folder, help=meaning)


@app.command()
def serve(  # noqa: PLR0913, PLR0917 - the options of the command
    host: Annotated[str, typer.Option(help="Address to listen on; :: is all, of IPv4 and IPv6.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one and logs it.", min=0, max=MOST_PORT)
    ] = 4567,
    create_stream: Annotated[
        list[str] | None, typer.Option(metavar="NAME:SHARDS", help="Create a stream; NAME:on-demand as well.")
    ] = None,
    region: Annotated[str, typer.Option(help="Region in ARNs.")] = "us-east-1",
    account: Annotated[str, typer.Option(help="Account in ARNs, 12 digits.")] = "000000000000",
    transition: Annotated[float, typer.Option(help="Seconds a stream stays CREATING, UPDATING or DELETING.")] = 0.0,
    limits: Annotated[bool, typer.Option(help="Keep Kinesis's rates per shard and operation.")] = True,
    tls: Annotated[
        Path | None,
        _folder_option("Serve TLS with tls.crt and tls.key of this folder, made if not there."),
    ] = None,
    data: Annotated[
        Path | None,
        _folder_option("Keep streams and records in this folder; without it they are in memory."),
    ] = None,
    testing: Annotated[bool, typer.Option(help="Let clients drive the clock and switch on faults.")] = False,
) -> None:
    """Serve the Kinesis API until SIGINT or SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    rates = Limits() if limits else Limits.none()
    try:
        if not host:
            # As of a variable that is not set; to the socket it is all interfaces, and nobody is asked who they are.
            raise SettingsError("host: it is empty; give an address, or :: for all of them")
        if not math.isfinite(transition):
            raise SettingsError(f"transition: {transition} is no number of seconds")
        settings = AccountSettings(id=account, region=region, limits=rates, transition_ms=round(transition * 1000))
        streams = [InitialStream.parse(text) for text in create_stream or ()]
        context = server_context(tls, host) if tls else None
        application = Application.open(settings, data, FaultPlan() if testing else None)
        _create_missing(application, streams)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(application, Address(host, port), context))
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from error
    except LocalKinesisError as error:
        logger.error("%s", error)
        raise typer.Exit(1) from error


def _create_missing(application: Application, wanted: list[InitialStream]) -> None:
    account = application.account
    now_ms = application.clock.now_ms()
    account.settle(now_ms)
    for stream in wanted:
        present = account.streams.get(stream.name)
        if present is None:
            account.create(stream.name, stream.mode, stream.shards, {}, now_ms)
        elif (present.mode, len(present.open_shards())) != (stream.mode, stream.shards):
            logger.warning(
                "--create-stream: %s is there already, %s with %d open shards, and stays as it is",
                stream.name,
                present.mode,
                len(present.open_shards()),
            )
    application.settle(changed=True)


async def _serve(application: Application, address: Address, tls: ssl.SSLContext | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = Server(application, address, tls)
    bound = await server.start()
    logger.info("serving Kinesis at %s", bound.url(tls=tls is not None))
    await stopped.wait()
    await server.stop()


if __name__ == "__main__":
    app()
