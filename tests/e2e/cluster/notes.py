"""What a chart's notes tell to type."""

from __future__ import annotations

from cluster.commands import helm, run


def commands_of(release: str, namespace: str) -> list[str]:
    """The lines that are set in, and those that they go on in."""
    notes = helm("get", "notes", release, "-n", namespace).replace("\\\n", "")
    return [line.strip() for line in notes.splitlines() if line.startswith("  ")]


def typed(command: str, seconds: float = 200) -> str:
    """What a line prints, as it is, in a shell."""
    return run("bash", "-c", command, seconds=seconds)
