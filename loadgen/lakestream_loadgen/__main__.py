"""``python -m lakestream_loadgen load | audit | ledger``, where there is no ``lakestream`` command, as in the image."""

from __future__ import annotations

import typer

from lakestream_loadgen.cli import audit_app, ledger_app, load_app

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.add_typer(load_app, name="load")
app.add_typer(audit_app, name="audit")
app.add_typer(ledger_app, name="ledger")

if __name__ == "__main__":
    app(prog_name="lakestream")
