"""Asks a running JVM, as `jcmd` does, which the Java of PyPI does not have: HotSpot's attach mechanism on Linux."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

_PATIENCE = 10.0
"""Seconds in which a JVM has to listen, or to answer."""
_USED = re.compile(r"total \d+K, used (\d+)K")


def heap_after_collection(pid: int) -> float:
    """MiB of its heap that are in use, once all garbage is collected.

    Raises:
        RuntimeError: it does not answer.
    """
    ask(pid, "GC.run")
    used = _USED.findall(ask(pid, "GC.heap_info"))
    if not used:
        raise RuntimeError(f"the JVM {pid} tells nothing of its heap")
    return sum(map(int, used)) / 1024


def ask(pid: int, command: str) -> str:
    """What the JVM answers to a command of `jcmd`.

    Raises:
        RuntimeError: it does not listen, or refuses.
    """
    listening = Path(f"/tmp/.java_pid{pid}")
    if not listening.exists():
        _wake(pid, listening)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(str(listening))
        connection.sendall(b"\0".join([b"1", b"jcmd", command.encode(), b"", b"", b""]))
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")
    status, _, text = answer.partition("\n")
    if status != "0":
        raise RuntimeError(f"the JVM {pid} refuses {command}: {text}")
    return text


def _wake(pid: int, listening: Path) -> None:
    """Have it listen: it looks for a file when it is sent SIGQUIT, instead of printing its threads."""
    wanted = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    wanted.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + _PATIENCE
        while not listening.exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the JVM {pid} does not listen")
            time.sleep(0.05)
    finally:
        wanted.unlink()
