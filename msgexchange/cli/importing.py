"""``store import`` and ``store export``: flights from and to other systems (spec 5.9)."""

import getpass
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from msgexchange.cli.context import Misuse, Session
from msgexchange.pipeline.import_states import ImportRefused


@click.command(
    "import",
    epilog="Example: run.py --config site.toml store import --states flights.ndjson --by jl",
)
@click.option(
    "--states",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="NDJSON, one flight a line, in the form of schd values; see docs/upgrade.md.",
)
@click.option("--publish", is_flag=True, help="Send each flight on the schd topic as well.")
@click.option("--by", help="Who does it; the user of this shell without it.")
@click.option("--reason", help="Why; goes to the audit.")
@click.pass_obj
def import_(
    session: Session, *, file: Path, publish: bool, by: str | None, reason: str | None
) -> None:
    """Load flights exported from another system: all of them or none.

    The whole file is checked before anything is written; each flight is read again and compared.
    Nobody may lead meanwhile: stop `serve` first.
    """
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("flights", total=None)

        def told(amount: int, total: int) -> None:
            progress.update(task, advance=amount, total=total)

        try:
            imported = session.backends.import_states(
                session.settings(),
                file,
                publishes=publish,
                by=by or getpass.getuser(),
                reason=reason,
                told=told,
            )
        except ImportRefused as refusal:
            raise Misuse(f"nothing was imported from {file}:\n{refusal}") from refusal
    click.echo(f"{imported} flights imported and compared")


@click.command(epilog="Example: run.py store export --out flights.ndjson")
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="File to write; standard output without it.",
)
@click.pass_obj
def export(session: Session, *, file: Path | None) -> None:
    """Every flight as NDJSON in the form `store import` reads, by FLID, of one moment."""
    lines = session.backends.export_states(session.settings())
    if file is None:
        for line in lines:
            sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
        return
    draft = file.with_name(file.name + ".new")
    with draft.open("wb") as out:
        amount = 0
        for line in lines:
            out.write(line + b"\n")
            amount += 1
    draft.replace(file)
    click.echo(f"{amount} flights written to {file}")
