"""Servers that speak the Kinesis API, started on loopback in processes of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from lakestream_bench._processes import ended

NPM_PACKAGES = ("kinesalite@3.3.3", "kinesis-local@0.6.2")
NPM_SECONDS = 180
START_SECONDS = 30.0


class UnavailableError(Exception):
    """A contender cannot be run here; the message says why."""


@dataclass(frozen=True)
class Contender:
    """How a server is started on a port."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None


def install_npm_servers(folder: Path) -> Path:
    """Install the npm servers into a folder, once; returns its node_modules."""
    modules = folder / "node_modules"
    if all((modules / package.partition("@")[0]).is_dir() for package in NPM_PACKAGES):
        return modules
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n', "utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", "--no-save", *NPM_PACKAGES]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NPM_SECONDS, check=False)
    if done.returncode:
        raise UnavailableError(f"npm cannot install {', '.join(NPM_PACKAGES)}: {done.stderr.strip()[-300:]}")
    return modules


def contender(name: str, port: int, npm_folder: Path, data: str) -> Contender:
    """The command line of a server by name; `data` is a folder that is empty."""
    match name:
        case "lakestream" | "lakestream-data":
            module = ("-m", "lakestream_localkinesis.cli", "serve", "--no-limits", "--port", str(port))
            keeps = ("--data", data) if name == "lakestream-data" else ()
            return Contender(name, (sys.executable, *module, *keeps))
        case "moto":
            return Contender(name, (sys.executable, "-m", "moto.server", "-p", str(port)))
        case "kinesalite":
            folder = install_npm_servers(npm_folder) / "kinesalite"
            waits = ("--createStreamMs", "50", "--updateStreamMs", "50", "--deleteStreamMs", "50")
            return Contender(name, (_node(), "cli.js", "--port", str(port), *waits), folder=folder)
        case "kinesis-local":
            # It reads its certificate from the working folder.
            folder = install_npm_servers(npm_folder) / "kinesis-local"
            ports = {"KINESIS_MOCK_PLAIN_PORT": str(port), "KINESIS_MOCK_TLS_PORT": str(free_port())}
            return Contender(name, (_node(), "main.js"), {**ports, "LOG_LEVEL": "ERROR"}, folder)
        case _:
            raise UnavailableError(f"there is no contender {name!r}")


@contextmanager
def running(name: str, npm_folder: Path) -> Iterator[int]:
    """Run a server until the block ends; gives its port."""
    port = free_port()
    with TemporaryDirectory() as data:
        started = contender(name, port, npm_folder, data)
        process = subprocess.Popen(
            started.command,
            cwd=started.folder,
            env={**os.environ, **started.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with ended(process):
            _await_answer(name, port, process)
            yield port


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        raise UnavailableError("node is not installed")
    return node


def _await_answer(name: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise UnavailableError(f"{name} ended with status {process.returncode} at its start")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()
            return
        except urllib.error.HTTPError:
            # It does not serve GET, and it answers.
            return
        except OSError:
            time.sleep(0.1)
    raise UnavailableError(f"{name} did not answer within {START_SECONDS} s")
