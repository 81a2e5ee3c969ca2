"""What the form of Locust's page is answered. Run in a process of its own: Locust patches the one that imports it."""

from __future__ import annotations

import pytest

from .conftest import errors_of

PREAMBLE = """
from locust.argument_parser import get_parser
from locust.env import Environment
from lakestream_loadgen import locustfile, page, run

def fresh():
    started = []
    options = get_parser(default_config_files=[]).parse_args(["--events", "100", "--run-time", "30s"])
    environment = Environment(shape_class=locustfile.OrderShape(), parsed_options=options)
    runner = environment.create_local_runner()
    environment.create_web_ui("127.0.0.1", 0)
    client = environment.web_ui.app.test_client()
    runner.start_shape = lambda: started.append(options.events)
    run.LoadRun.install(environment)
    page.check_forms(environment)

    def answer(**form):
        return client.post("/swarm", data={"user_count": "10", "spawn_rate": "5", **form}).get_json()

    def starts():
        return started.pop() if started else None

    return locals()
"""

CASES = {
    "a load is started with what the form says": """
        assert answer(events="200")["success"]
        assert starts() == 200.0
    """,
    "users are at least one, and come at a rate": """
        for field, text in {"spawn_rate": "-1 0 nan inf much".split(), "user_count": "-5 0 1.5".split()}.items():
            for one in text:
                refused = answer(**{field: one})
                assert not refused["success"], (field, one)
                assert starts() is None
        assert refused["message"] == "user_count: '1.5' is not a whole number"
    """,
    "of a load that runs the users can be changed, and nothing else": """
        environment.events.test_start.fire(environment=environment)
        refused = answer(events="400", stream="clicks")
        assert refused["message"].startswith("stream, events: not to be changed in a load that runs"), refused
        assert (options.events, options.stream) == (100.0, "orders")
        assert answer(user_count="20", events="100", stream="orders")["success"]
        assert options.num_users == 20
    """,
    "while a load comes to its end, none can be started": """
        environment.events.test_start.fire(environment=environment)
        answered = []
        environment.events.test_stopping.add_listener(lambda **_: answered.append(answer()))
        environment.events.test_stopping.fire(environment=environment)
        assert "not come to its end" in answered[0]["message"], answered
        assert starts() is None
        environment.events.test_stop.fire(environment=environment)
        assert answer(events="400")["success"]
        assert starts() == 400.0
    """,
    "a master starts no load that nobody writes": """
        runner.worker_count = 0
        refused = answer()
        assert refused["message"].startswith("there is no worker"), refused
        assert starts() is None
        runner.worker_count = 1
        assert answer()["success"]
        assert starts() == 100.0
    """,
    "where records go is not said by the form": """
        shown = "https://kinesis.local.amazonaws.com"
        for form in ({"host": shown}, {}):
            assert answer(**form)["success"], form
        refused = answer(host="http://127.0.0.1:4567")
        assert refused["message"].startswith("host: where records go is said by AWS_ENDPOINT_URL_KINESIS"), refused
        assert environment.host == shown
        from lakestream_loadgen.run import LoadRun
        options.host = "http://127.0.0.1:4567"
        try:
            LoadRun.install(environment)
        except SystemExit as ended:
            assert ended.code == 2
        else:
            raise AssertionError("--host was taken")
    """,
    "a run time that the form has no more is none": """
        assert options.run_time == 30
        assert answer(run_time="5s")["success"]
        assert options.run_time == 5
        assert answer()["success"]
        assert options.run_time == 5
        assert answer(run_time="")["success"]
        assert options.run_time is None
    """,
}


def test_the_form_is_answered_with_what_becomes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "local")
    errors = errors_of(PREAMBLE, CASES)
    assert not errors, "\n".join(f"{name}\n{trace}" for name, trace in errors.items())
