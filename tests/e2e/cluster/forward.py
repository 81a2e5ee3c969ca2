"""Ports of the cluster on the loopback interface."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_READY = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ")


@contextmanager
def forwarded(namespace: str, target: str, port: int) -> Iterator[int]:
    """`kubectl port-forward` to a free local port, while entered."""
    command = ["kubectl", "-n", namespace, "port-forward", "--address=127.0.0.1", target, f":{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            ready = _READY.search(line)
            assert ready, f"{' '.join(command)} said {line!r}"
            yield int(ready[1])
        finally:
            process.terminate()
