"""``catalogue`` and ``config``: what is in force, and whether a file is usable."""

from pathlib import Path

import click

from msgexchange.cli import show
from msgexchange.cli.context import WRONG, Session
from msgexchange.codec.catalogue import Catalogue
from msgexchange.codec.catalogue_file import (
    CatalogueError,
    default_catalogue_text,
    load,
    problems,
)
from msgexchange.codec.catalogue_table import rows as catalogue_rows
from msgexchange.codec.catalogue_table import unconfirmed as unconfirmed_names
from msgexchange.config import Settings
from msgexchange.config import rows as config_rows
from msgexchange.config import unconfirmed as unconfirmed_settings


def catalogue_in_force(settings: Settings) -> Catalogue:
    """The site's own, or the one that ships."""
    configured = settings.codec.catalogue
    text = configured.read_text(encoding="utf-8") if configured else default_catalogue_text()
    try:
        return load(text)
    except CatalogueError as error:
        raise click.ClickException(str(error)) from error


@click.group()
def catalogue() -> None:
    """The site's message dialect: kinds, names, fields, clear rules, columns."""


@catalogue.command(epilog="Example: run.py catalogue check site-catalogue.toml")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@show.JSON
@click.pass_context
def check(context: click.Context, *, file: Path, as_json: bool) -> None:
    """Validate FILE; every problem is listed. Exit 1 if there is one."""
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    found = problems(text)
    assumed = [] if found else unconfirmed_names(load(text))
    if as_json:
        show.as_json({"file": str(file), "problems": found, "unconfirmed": assumed})
    elif found:
        click.echo(f"{file}: {len(found)} problem(s)")
        for problem in found:
            click.echo(f"  - {problem}")
    else:
        click.echo(f"{file}: usable; {len(assumed)} names are not confirmed by the site")
    context.exit(WRONG if found else 0)


@catalogue.command("show", epilog="Example: run.py catalogue show --json")
@show.JSON
@click.pass_obj
def show_catalogue(session: Session, *, as_json: bool) -> None:
    """The catalogue in force, a name a line."""
    found = catalogue_rows(catalogue_in_force(session.settings()))
    columns = ("name", "use", "shape", "fields", "clear rule", "target", "mark")
    values = [
        (row.name, row.use, row.shape, row.fields, row.clear_rule, row.target, row.mark)
        for row in found
    ]
    if as_json:
        show.as_json([dict(zip(columns, row, strict=True)) for row in values])
    else:
        show.table("catalogue", columns, values)


@click.group()
def config() -> None:
    """The configuration: is it usable, and what is in force."""


@config.command("check", epilog="Example: run.py --config site.toml config check")
@show.JSON
@click.pass_obj
def check_config(session: Session, *, as_json: bool) -> None:
    """Validate everything at once (exit 2 if something is wrong); list what is assumed."""
    assumed = unconfirmed_settings(session.settings())
    if as_json:
        show.as_json([question._asdict() for question in assumed])
        return
    click.echo("the configuration is usable")
    show.table(
        "not confirmed by the site yet", ("key", "in force", "question", "if wrong"), assumed
    )


@config.command("show", epilog="Example: run.py --config site.toml config show")
@show.JSON
@click.pass_obj
def show_config(session: Session, *, as_json: bool) -> None:
    """Every setting in force and where its value came from; secrets are masked."""
    found = config_rows(session.settings())
    if as_json:
        show.as_json([row._asdict() for row in found])
    else:
        show.table("configuration", ("key", "value", "origin"), found)
