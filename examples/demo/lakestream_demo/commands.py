"""The demo's child processes, as command lines and environments. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from lakestream_demo.document import DemoDocument
from lakestream_demo.loopback import HOST, without_proxy
from lakestream_demo.processes import Command
from lakestream_demo.settings import Load
from lakestream_demo.workspace import Workspace

LAKESTREAM = (sys.executable, "-m", "lakestream.main")
BUCKET = "lake"


def child_environment(environ: Mapping[str, str], region: str, scratch: Path, s3: str | None) -> dict[str, str]:
    """The environment of every child.

    Whatever the shell says of AWS stays behind: the demo must not be able to reach anyone's account.

    Args:
        environ: the demo's own.
        region: AWS region, which is part of signatures.
        scratch: folder for what Spark spills.
        s3: URL of the S3 server, if the lake is on one.
    """
    own = {name: value for name, value in environ.items() if not name.startswith("AWS_")}
    own |= {
        "AWS_ACCESS_KEY_ID": "demo",
        "AWS_SECRET_ACCESS_KEY": "demo-secret",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        # Botocore would take a proxy of the environment even to this machine itself.
        **without_proxy(environ),
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYTHONUNBUFFERED": "1",
    }
    if s3 is not None:
        own["AWS_ENDPOINT_URL_S3"] = s3
    return own


def jars_command(environment: Mapping[str, str]) -> Command:
    return Command(
        "jars",
        (*LAKESTREAM, "jars"),
        environment,
        "The jars come from a Maven repository: look at the connection and the proxy, then try again.",
    )


def kinesis_command(environment: Mapping[str, str], port: int, stream: str, shards: int) -> Command:
    return Command(
        "kinesis",
        (*LAKESTREAM, "kinesis", "serve", "--port", str(port), "--create-stream", f"{stream}:{shards}"),
        environment,
        "If the port was taken by another process meanwhile, just try again.",
    )


def s3_command(environment: Mapping[str, str], port: int) -> Command:
    return Command(
        "s3",
        (sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)),
        environment,
        "If the port was taken by another process meanwhile, just try again.",
    )


def ingest_command(environment: Mapping[str, str], workspace: Workspace, writer: str) -> Command:
    return Command(
        writer,
        (
            *LAKESTREAM,
            "ingest",
            *("--file", str(workspace.document)),
            *("--writer", writer),
            *("--cores", "1"),
            *("--progress-file", str(workspace.progress(writer))),
        ),
        environment,
        "The log says which record, setting or resource it was; memory is the first thing to look at.",
    )


def load_command(environment: Mapping[str, str], workspace: Workspace, document: DemoDocument, load: Load) -> Command:
    return Command(
        load.name,
        (
            *LAKESTREAM,
            "load",
            "--headless",
            *("--stream", document.stream),
            *("--users", str(load.users)),
            *("--spawn-rate", str(load.users)),
            *("--events", str(load.events)),
            *("--run-time", f"{load.duration.total_seconds():.0f}s"),
            *("--ledger", str(workspace.ledger)),
            *("--csv", str(workspace.statistics / load.name)),
        ),
        {**_without_load(environment), "AWS_ENDPOINT_URL_KINESIS": document.endpoint},
        "If there are too many open files or too little memory, take fewer users: --users 500.",
    )


def _without_load(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what the shell may have of other loads: each option can be given as a variable too."""
    return {name: value for name, value in environment.items() if not name.startswith(("LAKESTREAM_", "LOCUST_"))}


def inspection_command(environment: Mapping[str, str], workspace: Workspace, load_began: datetime) -> Command:
    return Command(
        "inspection",
        (sys.executable, "-m", "lakestream_demo.inspection", str(workspace.root), load_began.isoformat()),
        environment,
        "The tables are still there, and the log says what could not be read.",
    )
