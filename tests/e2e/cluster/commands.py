"""kubectl and helm, as a user types them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

Object = dict[str, Any]
"""A Kubernetes object, as kubectl gives it."""


class CommandError(AssertionError):
    """A command failed; the message has what it printed."""


def run(*command: str, stdin: str | None = None, seconds: float = 120) -> str:
    """What a command prints.

    Raises:
        CommandError: it failed, or took longer than `seconds`.
    """
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{' '.join(command)}: not done after {seconds:.0f} s") from error
    if done.returncode:
        raise CommandError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one namespace."""

    namespace: str

    def run(self, *arguments: str, stdin: str | None = None, seconds: float = 120) -> str:
        return run("kubectl", "-n", self.namespace, *arguments, stdin=stdin, seconds=seconds)

    def get(self, kind: str, name: str) -> Object | None:
        """The object, or None if there is none."""
        text = self.run("get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, selector: str = "") -> list[Object]:
        items: list[Object] = json.loads(self.run("get", kind, "-l", selector, "-o", "json"))["items"]
        return items

    def apply(self, document: Object, *options: str) -> str:
        return self.run("apply", "-f", "-", *options, stdin=yaml.safe_dump(document))

    @contextmanager
    def applied(self, document: Object) -> Iterator[None]:
        """It is there while entered."""
        self.apply(document)
        try:
            yield
        finally:
            self.delete(document["kind"], document["metadata"]["name"])

    def patch(self, kind: str, name: str, change: Object, *options: str) -> None:
        self.run("patch", kind, name, "--type=merge", "-p", json.dumps(change), *options)

    def delete(self, kind: str, name: str, *options: str, seconds: float = 180) -> None:
        self.run("delete", kind, name, "--ignore-not-found", *options, seconds=seconds)


def helm(*arguments: str, seconds: float = 300) -> str:
    return run("helm", *arguments, seconds=seconds)


def set_flags(values: dict[str, str | int | float | bool]) -> Sequence[str]:
    """`--set` flags of helm."""
    return [part for name, value in values.items() for part in ("--set", f"{name}={json.dumps(value).strip(chr(34))}")]
