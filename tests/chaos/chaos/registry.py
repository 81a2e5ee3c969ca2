"""A Glue Schema Registry on the loopback: which versions there are, and what goes wrong when it is asked for one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from uuid import UUID

from answers import Answers, serving


class Trouble(StrEnum):
    """What a request meets."""

    DENY = "deny"
    THROTTLE = "throttle"
    FAIL = "fail"
    HANG_UP = "hang up"
    LATE = "late"
    """The answer comes some seconds later."""


_REFUSALS = {
    Trouble.DENY: (400, "AccessDeniedException"),
    Trouble.THROTTLE: (400, "ThrottlingException"),
    Trouble.FAIL: (500, "InternalServiceException"),
}


class Registry:
    """What it has, and what is wrong with it."""

    def __init__(self, url: str, versions: dict[UUID, tuple[str, str]], troubles: list[tuple[Trouble, float]]) -> None:
        self.url = url
        self._versions = versions
        self._troubles = troubles

    def register(self, version: bytes, data_format: str, definition: str) -> None:
        self._versions[UUID(bytes=version)] = data_format, definition

    def trouble(self, trouble: Trouble, times: int, seconds: float) -> None:
        """Have the next requests meet something."""
        self._troubles += [(trouble, seconds)] * times

    def calm(self) -> None:
        """Nothing is wrong from now on."""
        self._troubles.clear()


@contextmanager
def registry() -> Iterator[Registry]:
    """One that is empty; it knows one operation, GetSchemaVersion."""
    versions: dict[UUID, tuple[str, str]] = {}
    troubles: list[tuple[Trouble, float]] = []

    class Handler(Answers):
        def reply(self) -> None:
            try:
                trouble, seconds = troubles.pop()
            except IndexError:
                self._tell()
                return
            if trouble is Trouble.LATE:
                time.sleep(seconds)
                self._tell()
            elif trouble is not Trouble.HANG_UP:
                self._refuse(*_REFUSALS[trouble])

        def _tell(self) -> None:
            version = UUID(json.loads(self.body)["SchemaVersionId"])
            if version not in versions:
                self._refuse(400, "EntityNotFoundException")
                return
            data_format, definition = versions[version]
            found = {"SchemaVersionId": str(version), "DataFormat": data_format, "SchemaDefinition": definition}
            self.answer(200, json.dumps({**found, "Status": "AVAILABLE"}).encode())

        def _refuse(self, status: int, code: str) -> None:
            self.answer(status, json.dumps({"__type": code, "Message": "as chaos has it"}).encode())

    with serving(Handler) as url:
        yield Registry(url, versions, troubles)
