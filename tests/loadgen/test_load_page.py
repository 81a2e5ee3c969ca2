"""To whom Locust's page is served, by Locust's own parser."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_PARSE = """
import json, os, sys
from locust.argument_parser import get_parser
import lakestream_loadgen.locustfile

def host(variable, configured, arguments):
    os.environ.pop("LOCUST_WEB_HOST", None)
    if variable is not None:
        os.environ["LOCUST_WEB_HOST"] = variable
    with open(sys.argv[1], "w") as file:
        file.write(configured)
    return get_parser(default_config_files=[sys.argv[1]]).parse_args(arguments).web_host

print(json.dumps([host(*case) for case in json.loads(sys.argv[2])]))
"""


def test_the_page_is_for_this_machine_alone_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    """It starts load without asking who you are. An empty text, as of a variable that is not set, says nothing."""
    cases: list[tuple[str | None, str, list[str], str]] = [
        (None, "", [], "127.0.0.1"),
        ("", "", [], "127.0.0.1"),
        ("0.0.0.0", "", [], "0.0.0.0"),
        ("*", "", [], "*"),
        ("", "web-host = 0.0.0.0", [], "0.0.0.0"),
        (None, "", ["--web-host=0.0.0.0"], "0.0.0.0"),
    ]
    asked = json.dumps([case[:3] for case in cases])
    # One process for all: to import Locust takes longer than all else.
    command = [sys.executable, "-c", _PARSE, str(tmp_path / "locust.conf"), asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [host for *_, host in cases]
