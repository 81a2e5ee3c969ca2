"""Runs the environment's `uv`, with the settings that pip has on this machine.

uv does not read pip's files and variables, and whoever has to reach packages through a mirror or a proxy has told pip
already. Variables that uv reads itself stay as they are.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pip._vendor import certifi

ONE_TO_ONE = {
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_INDEX",
    "index-url": "UV_DEFAULT_INDEX",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
    "trusted-host": "UV_INSECURE_HOST",
}
"""The variable that tells uv what a setting tells pip; both separate many values by white space."""


def pip_settings(listing: str) -> dict[str, str]:
    """What `pip config list` says that counts when pip installs: variables before `[install]` before `[global]`."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in sections:
            sections[section][name] = str(ast.literal_eval(value))
    return {name: value for section in sections.values() for name, value in section.items()}


def certificates(env: Mapping[str, str]) -> str:
    """The file of certificates that pip trusts without a setting; some systems have their own in the place of pip's."""
    return env.get("REQUESTS_CA_BUNDLE") or env.get("CURL_CA_BUNDLE") or certifi.where()


def uv_variables(settings: Mapping[str, str]) -> dict[str, str]:
    variables = {
        variable: " ".join(settings[name].split()) for name, variable in ONE_TO_ONE.items() if settings.get(name)
    }
    if "UV_INDEX" in variables:
        # As pip has it: the version counts, and not which index is asked first.
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    # pip passes over folders that are not there; uv does not.
    places = [place for place in settings.get("find-links", "").split() if "://" in place or Path(place).exists()]
    if places:
        variables["UV_FIND_LINKS"] = ",".join(places)
    return variables


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """What uv takes no variable for."""
    return ["--no-index"] if settings.get("no-index", "").lower() in ("1", "on", "true", "y", "yes") else []


def main() -> None:
    listing = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
    settings = {"cert": certificates(os.environ)} | pip_settings(listing)
    uv = str(Path(sys.executable).with_name("uv"))
    os.execve(uv, [uv, *sys.argv[1:], *uv_options(settings)], uv_variables(settings) | os.environ)


if __name__ == "__main__":
    main()
