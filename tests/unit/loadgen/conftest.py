"""Tests of what imports Locust, which patches the process that does."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping

_RUN = """
import json, sys, traceback

errors = {}
for name, case in json.load(sys.stdin).items():
    try:
        exec(case, fresh())
    except Exception:
        errors[name] = traceback.format_exc()
print(json.dumps(errors))
"""


def errors_of(preamble: str, cases: Mapping[str, str]) -> dict[str, str]:
    """Run cases in a process of their own; what those that failed ended with.

    Args:
        preamble: Python that defines `fresh()`, which makes the names that a case knows.
        cases: Python, by name.
    """
    done = subprocess.run(
        [sys.executable, "-c", preamble + _RUN],
        input=json.dumps({name: textwrap.dedent(case) for name, case in cases.items()}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    errors: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return errors
