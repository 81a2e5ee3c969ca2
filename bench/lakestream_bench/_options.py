"""What options of our commands have in common."""

from __future__ import annotations

from collections.abc import Collection

import typer


def require_known(what: str, names: Collection[str], known: Collection[str]) -> None:
    """Check that names are among those that there are.

    Raises:
        typer.BadParameter: names those that are not, and all that there are.
    """
    if unknown := set(names) - set(known):
        raise typer.BadParameter(f"there is no {what} {', '.join(sorted(unknown))}; choose from: {', '.join(known)}")
