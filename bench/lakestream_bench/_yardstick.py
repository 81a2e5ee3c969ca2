"""How fast the machine is just now. Virtual ones vary by a third in a day: figures of two runs compare by it alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import orjson

_SECONDS = 2.0
_DOCUMENT = orjson.dumps(
    [
        {"order_id": f"o-{number:08}", "version": number % 7, "amount": number / 16, "note": "x" * (number % 90)}
        for number in range(1_000)
    ]
)


def machine_speed() -> float:
    """Megabytes per second of one JSON document that all cores parse, side by side, each in a process of its own."""
    command = [sys.executable, "-m", __name__, str(_SECONDS)]
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
    return sum(float(program.communicate()[0]) for program in programs) / 1e6


def _bytes_per_second(seconds: float) -> float:
    parsed, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        orjson.loads(_DOCUMENT)
        parsed += len(_DOCUMENT)
    return parsed / took


if __name__ == "__main__":
    print(_bytes_per_second(float(sys.argv[1])))
