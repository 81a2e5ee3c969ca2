"""To whom Locust's page is served, by Locust's own parser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PARSE = """
import sys
from locust.argument_parser import get_parser
import lakestream_loadgen.locustfile
print(get_parser(default_config_files=sys.argv[1:2]).parse_args(sys.argv[2:]).web_host)
"""


@pytest.mark.parametrize(
    ("variable", "configured", "arguments", "host"),
    [
        (None, "", [], "127.0.0.1"),
        ("", "", [], "127.0.0.1"),
        ("0.0.0.0", "", [], "0.0.0.0"),
        ("*", "", [], "*"),
        ("", "web-host = 0.0.0.0", [], "0.0.0.0"),
        (None, "", ["--web-host=0.0.0.0"], "0.0.0.0"),
    ],
)
def test_the_page_is_for_this_machine_alone_unless_somebody_says_otherwise(
    variable: str | None, configured: str, arguments: list[str], host: str, tmp_path: Path
) -> None:
    """It starts load without asking who you are. An empty text, as of a variable that is not set, says nothing."""
    environment = {name: value for name, value in os.environ.items() if name != "LOCUST_WEB_HOST"}
    if variable is not None:
        environment["LOCUST_WEB_HOST"] = variable
    (tmp_path / "locust.conf").write_text(configured)
    command = [sys.executable, "-c", _PARSE, str(tmp_path / "locust.conf"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == host
