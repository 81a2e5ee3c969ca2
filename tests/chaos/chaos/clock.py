"""A wall clock for each driver, which can be wrong and can be set."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")


class WallClock:
    """The clock of one driver and of all that it starts."""

    def __init__(self, file: Path, library: Path | None, seconds: float) -> None:
        self._file = file
        self._library = library
        self.set(seconds)

    def set(self, seconds: float) -> None:
        """Be so many seconds before the machine's clock, or behind it if negative."""
        self._file.touch()
        with self._file.open("r+b") as content:
            content.write(struct.pack("=q", round(seconds * 1e9)))

    def environment(self) -> dict[str, str]:
        """For the driver."""
        return {} if self._library is None else {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._file)}


def clock_library(folder: Path) -> Path | None:
    """Compile the library that drivers are started with; None: there is no C compiler, and all clocks are right."""
    if (compiler := shutil.which("cc")) is None:
        return None
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"], check=True)
    return library
