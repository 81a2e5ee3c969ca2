"""Names of the JVM are looked up once, without a JVM."""

from __future__ import annotations

import pytest
from py4j import protocol
from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

from lakestream.spark.names import keep_names


class Client:
    """Stands for the connection to a JVM that has `org.app.Tool`, with a method and a static field."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send_command(self, command: str) -> str:
        _, kind, name, member, *_ = command.split("\n")
        if kind == protocol.REFL_GET_MEMBER_SUB_COMMAND_NAME.strip():
            self.asked.append(member)
            return "ym" if member == "run" else f"yi{len(self.asked)}"
        self.asked.append(name)
        return f"yc{name}" if name.endswith("Tool") else "yp"

    @property
    def gateway_property(self) -> Client:
        return self

    pool = converters = None


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> JVMView:
    for place in (JVMView, JavaPackage, JavaClass):
        monkeypatch.setattr(place, "__getattr__", place.__getattr__)
    keep_names()
    keep_names()
    return JVMView(Client(), "jvm", id="rj")


def test_packages_classes_and_methods_are_asked_for_once(view: JVMView) -> None:
    methods = [view.org.app.Tool.run for _ in range(3)]
    assert isinstance(methods[0], JavaMember)
    assert view._gateway_client.asked == ["org", "org.app", "org.app.Tool", "run"]


def test_a_static_field_is_asked_for_each_time(view: JVMView) -> None:
    first, second = view.org.app.Tool.number, view.org.app.Tool.number
    assert second > first
