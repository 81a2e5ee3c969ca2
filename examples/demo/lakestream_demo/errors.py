"""What can go wrong in the demo, each with the one thing to do about it."""

from __future__ import annotations


class DemoError(Exception):
    """Root of the demo's errors.

    `advice` says what the person at the terminal can do; it is shown below the message.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class SettingError(DemoError):
    """An option that cannot be used."""


class WorkspaceError(DemoError):
    """The output folder is not ours to use."""


class ChildFailedError(DemoError):
    """A process of the demo ended too early, or never became ready.

    `tail` holds the last lines of its log.
    """

    def __init__(self, message: str, advice: str = "", tail: tuple[str, ...] = ()) -> None:
        super().__init__(message, advice)
        self.tail = tail


class DeadlineError(DemoError):
    """A phase took longer than it may."""


class InterruptedDemoError(DemoError):
    """The person (or the system) asked the demo to stop."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("interrupted")
        self.signal_number = signal_number
