"""What of Locust's page is ours: a load that cannot be is refused where it is asked for."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify, request
from locust.env import Environment

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.settings import settings_with


def check_forms(environment: Environment, **_: Any) -> None:
    """Listener for Locust's init event; a process without a page has no forms.

    Locust takes the values of a form before it starts a run, and a run that cannot start ends the process, page and
    all.
    """
    page = environment.web_ui.app if environment.web_ui else None
    if page is not None:
        page.before_request(lambda: _refusal(environment))


def _refusal(environment: Environment) -> Response | None:
    if request.method != "POST" or not request.path.endswith("/swarm") or environment.parsed_options is None:
        return None
    try:
        settings_with(environment.parsed_options, request.form)
    except SettingsError as error:
        answer: Response = jsonify({"success": False, "message": str(error), "host": environment.host})
        return answer
    return None
