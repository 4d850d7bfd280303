"""``simulate``: the real steps in a world of chance, seed by seed."""

import dataclasses
import re

import click

from msgexchange.cli import show
from msgexchange.cli.context import WRONG, Session

_RANGE = re.compile(r"(\d+)\.\.(\d+)")


class Seeds(click.ParamType[range]):
    """``A..B``, both included."""

    name = "A..B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """The seeds; a text that is no range is wrong use."""
        if isinstance(value, range):
            return value
        match = _RANGE.fullmatch(str(value))
        if match is None or int(match[1]) > int(match[2]):
            self.fail(f"{value!r} is no range of seeds: write A..B, as in 1..100", param, ctx)
        return range(int(match[1]), int(match[2]) + 1)


@click.command(epilog="Example: run.py simulate --seeds 1..100")
@click.option("--seeds", type=Seeds(), default="1..100", show_default=True, help="Both included.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
@click.pass_context
def simulate(context: click.Context, *, seeds: range, as_json: bool) -> None:
    """Crashes, outages, lost answers and stale leaders by chance; every promise is judged.

    Needs no configuration and touches no store, mailbox or broker of a site.
    """
    session: Session = context.obj
    with click.progressbar(length=len(seeds), label="seeds", hidden=as_json) as bar:
        found = session.backends.simulate(seeds, lambda: bar.update(1))
    if as_json:
        show.as_json(dataclasses.asdict(found))
    else:
        show.pairs("simulation", {"seeds": found.seeds, "steps": found.steps})
        show.pairs("faults", found.faults)
        show.pairs("reached at the end", found.reached)
        click.echo(f"not reached: {', '.join(found.not_reached) or 'nothing'}")
        if found.broken is not None:
            click.echo(found.broken, err=True)
    context.exit(0 if found.broken is None else WRONG)
