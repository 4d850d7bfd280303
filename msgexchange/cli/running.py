"""``serve``, ``demo``, ``verify``, ``store``: commands that run or change something."""

import click

from msgexchange.cli import show
from msgexchange.cli.context import (
    WRONG,
    DemoOptions,
    Misuse,
    Session,
    UpgradeRefused,
    Verification,
)
from msgexchange.cli.importing import export, import_

VIOLATIONS_SHOWN_MAX = 20


@click.command(epilog="Example: run.py --config site.toml serve")
@click.pass_context
def serve(context: click.Context) -> None:
    """Run the pipeline and the HTTP interface until Ctrl-C or SIGTERM."""
    session: Session = context.obj
    context.exit(session.backends.serve(session.settings()))


@click.command(epilog="Example: run.py demo --exit")
@click.option("--exit", "ends", is_flag=True, help="End after the summary instead of serving on.")
@click.option(
    "--duration",
    "duration_s",
    type=click.FloatRange(1, 3_600),
    default=60,
    show_default=True,
    help="Seconds the day is compressed to.",
)
@click.option(
    "--messages",
    "messages_max",
    type=click.IntRange(100),
    help="A shorter feed: every n-th flight, at most so many messages.",
)
@click.pass_context
def demo(
    context: click.Context, *, ends: bool, duration_s: float, messages_max: int | None
) -> None:
    """A real published day of flights through the whole pipeline, then a verification.

    Nothing needs to be installed or configured: embedded stores, an embedded Kafka-protocol
    broker, the HTTP interface. The demo starts from empty stores in the data folder's demo/.
    """
    session: Session = context.obj
    options = DemoOptions(ends=ends, duration_s=duration_s, messages_max=messages_max)
    context.exit(session.backends.demo(session.settings(), options))


@click.command(epilog="Examples: run.py verify;  run.py verify --kafka --json")
@click.option("--kafka", "topics", is_flag=True, help="Read both topics back as well.")
@show.JSON
@click.pass_context
def verify(context: click.Context, *, topics: bool, as_json: bool) -> None:
    """Check the invariants on mailbox, own store and (with --kafka) topics. Exit 1 if one fails."""
    session: Session = context.obj
    found = session.backends.verify(session.settings(), topics=topics)
    if as_json:
        show.as_json(verification_document(found))
    else:
        show_verification(found)
    context.exit(0 if found.clean else WRONG)


def verification_document(verification: Verification) -> dict[str, object]:
    """What was found, for programs."""
    return {
        "clean": verification.clean,
        "violations": {
            name: [violation.text for violation in found]
            for name, found in verification.found.items()
        },
        "leftOut": list(verification.left_out),
    }


def show_verification(verification: Verification) -> None:
    """What was found, for people."""
    show.table(
        "verify",
        ("invariant", "result", "what breaks it"),
        (
            (
                name,
                "holds" if not found else f"{len(found)} violations",
                "; ".join(violation.text for violation in found[:VIOLATIONS_SHOWN_MAX]),
            )
            for name, found in verification.found.items()
        ),
    )
    for reason in verification.left_out:
        click.echo(f"not judged: {reason}")


@click.group()
def store() -> None:
    """The own database."""


@store.command(epilog="Example: run.py --config site.toml store upgrade --backup-done")
@click.option("--backup-done", is_flag=True, help="Say that a backup of a non-empty store exists.")
@click.pass_obj
def upgrade(session: Session, *, backup_done: bool) -> None:
    """Bring the schema to the version of this software."""
    try:
        click.echo(session.backends.upgrade(session.settings(), backup_done=backup_done))
    except UpgradeRefused as refusal:
        raise Misuse(str(refusal)) from refusal


store.add_command(import_)
store.add_command(export)

BY = click.option("--by", required=True, help="Who does it; goes to the audit.")
REASON = click.option("--reason", help="Why; goes to the audit.")


@store.command("new-id", epilog="Example: run.py --config copy.toml store new-id --by jl")
@BY
@REASON
@click.pass_obj
def new_id(session: Session, *, by: str, reason: str | None) -> None:
    """Give a copied store an id of its own, before it publishes anything.

    Topics know a store by its id: two with the same id would shut each other out.
    """
    after = session.backends.new_store_id(session.settings(), by=by, reason=reason)
    click.echo(f"store {after.store_id}, generation {after.generation}")


@store.command(
    "new-generation",
    epilog='Example: run.py store new-generation --by jl --reason "restored from last night"',
)
@BY
@REASON
@click.option(
    "--above",
    type=click.IntRange(0, 1_000_000_000),
    default=0,
    help="Raise it above this one as well: the generation the topics were last written by.",
)
@click.pass_obj
def new_generation(session: Session, *, by: str, reason: str | None, above: int) -> None:
    """Say that the store was restored from a backup: consumers then compare versions, not ids.

    A running pipeline stops working and must be started again.
    """
    after = session.backends.new_generation(session.settings(), above=above, by=by, reason=reason)
    click.echo(f"store {after.store_id}, generation {after.generation}")
