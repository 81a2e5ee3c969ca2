"""What of Locust's page is ours: a load that cannot be is refused where it is asked for."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify, request
from locust.env import Environment

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.run import LoadRun
from lakestream_loadgen.settings import NO_HOST, changed_by, settings_with


def check_forms(environment: Environment, **_: Any) -> None:
    """Listener for Locust's init event, behind LoadRun's; a process without a page has no forms.

    Locust takes the values of a form before it starts a run, and a run that cannot start ends the process, page and
    all. Of a run that is there it takes the number of users, and says of all else that it had done so.
    """
    page = environment.web_ui.app if environment.web_ui else None
    if page is not None:
        page.before_request(lambda: _refusal(environment))


def _refusal(environment: Environment) -> Response | None:
    options = environment.parsed_options
    if request.method != "POST" or not request.path.endswith("/swarm") or options is None:
        return None
    run = LoadRun.of(environment)
    try:
        settings_with(options, request.form)
        if not getattr(environment.runner, "worker_count", 1):
            # Locust would start nothing, also once there is one, and take it for a load that runs.
            raise SettingsError("there is no worker to write a load: try again once one is there")
        if run.is_ending:
            raise SettingsError("the load before this one has not come to its end yet: try again in a while")
        if request.form.get("host", shown := _shown_host(environment)) != shown:
            raise SettingsError(f"host: {NO_HOST}")
        others = changed_by(options, request.form)
        if others and run.is_under_way:
            raise SettingsError(
                f"{', '.join(others)}: not to be changed in a load that runs; stop it, and start it anew"
            )
    except SettingsError as error:
        answer: Response = jsonify({"success": False, "message": str(error), "host": environment.host})
        return answer
    if request.form.get("run_time") == "":
        # Locust keeps that of the run before.
        options.run_time = None
    return None


def _shown_host(environment: Environment) -> str:
    """What Locust puts into its form, and gets back if nobody changes it."""
    assert environment.web_ui is not None
    environment.web_ui.update_template_args()
    return str(environment.web_ui.template_args["host"])
