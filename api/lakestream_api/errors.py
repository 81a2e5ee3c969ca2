"""Everything that this package raises on purpose."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a document.

    `path` is where, as one would write it in YAML terms (`spec.writers[0].hudi.recordKey`),
    or empty for the document itself; `message` says what is wrong and what to do.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class LakeStreamApiError(Exception):
    """Root of this package's errors."""


class InvalidDocumentError(LakeStreamApiError):
    """The document is not a valid LakeStream; all its problems are in `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
