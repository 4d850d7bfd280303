"""``bench``: how fast it is on this machine, beside the least the same work costs there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from msgexchange.bench.figures import Figure, document
from msgexchange.bench.profiling import Profile, Spent
from msgexchange.bench.run import PARTS, Measured
from msgexchange.cli import show
from msgexchange.cli.context import BenchOptions, Session


@click.command(
    epilog="Examples: run.py bench;  run.py bench --only delay --only idle;  "
    "run.py bench --full --json;  run.py bench --profile"
)
@click.option("--short", "size", flag_value="short", default=True, help="Under three minutes.")
@click.option("--full", "size", flag_value="full", help="More rounds of more messages.")
@click.option("--tiny", "size", flag_value="tiny", help="Only to see that it runs and is right.")
@click.option(
    "--only", multiple=True, type=click.Choice(list(PARTS)), help="This part alone; repeatable."
)
@click.option("--profile", "profiles", is_flag=True, help="Where a message's time goes, instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
@click.pass_obj
def bench(
    session: Session, *, size: str, only: tuple[str, ...], profiles: bool, as_json: bool
) -> None:
    """Measure on PostgreSQL, MariaDB and broker processes of its own, fsync on.

    Each figure stands beside its floor, measured in the same run, round by round in turn, and what
    was measured is checked. A missed must is shown and is no failure; a wrong result is. Needs no
    configuration; MSGEXCHANGE_TEST_POSTGRES, _MYSQL and _KAFKA name other servers.
    """
    with _progress() as (begin, tell):
        options = BenchOptions(size=size, only=only, begin=begin, tell=tell)
        backends = session.backends
        if profiles:
            seen = backends.bench_profile(options)
        else:
            measured = backends.bench(options)
    if profiles:
        _show_profile(seen, as_json=as_json)
    elif as_json:
        show.as_json(
            {
                **document(measured.figures),
                "machine": dict(measured.machine),
                "leftOut": list(measured.left_out),
            }
        )
    else:
        _show(measured)


@contextmanager
def _progress() -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    bar = Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("starting servers", total=None)
        yield (
            lambda parts: bar.update(task, description="measuring", total=parts),
            lambda what: bar.update(task, description=what, advance=1),
        )


def _show(measured: Measured) -> None:
    show.table(
        "bench: medians; ratios of rounds that stand side by side",
        ("figure", "measured", "floor", "ratio", "spread", "must", "aim", ""),
        map(_line, measured.figures),
    )
    conditions = {figure.name: _conditions(figure) for figure in measured.figures}
    show.pairs("conditions", {**measured.machine, **conditions})
    click.echo("not measured yet: " + "; ".join(measured.left_out))


def _line(figure: Figure) -> tuple[object, ...]:
    sign = "≥" if figure.bar.at_least else "≤"
    unit = "" if figure.floor is not None else f" {figure.unit}"
    low, high = figure.spread
    verdict = "aim met" if figure.aim_met else "must met" if figure.must_met else "MISSED"
    return (
        figure.name,
        f"{number(figure.value)} {figure.unit}",
        None if figure.floor is None else f"{number(figure.floor)} {figure.unit}",
        None if figure.ratio is None else f"{figure.ratio:.2f}",
        f"{number(low)} to {number(high)}, {figure.rounds} rounds",
        f"{sign} {figure.bar.must:g}{unit}",
        f"{sign} {figure.bar.aim:g}{unit}",
        verdict,
    )


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.5f}"


def _conditions(figure: Figure) -> str:
    return "; beside: ".join(
        said for name in ("value", "floor") if (said := figure.conditions.get(name))
    )


def _show_profile(seen: Profile, *, as_json: bool) -> None:
    if as_json:
        show.as_json(
            {
                "messages": seen.messages,
                "steps": [_spent(one, seen.messages) for one in seen.steps],
                "functions": [
                    {"function": one.name, "calls": one.calls, "own_s": one.own_s}
                    for one in seen.functions
                ],
            }
        )
        return
    rows = [_spent(one, seen.messages) for one in seen.steps]
    show.table(
        f"per message, {seen.messages} operations, one step after the other on one thread",
        list(rows[0]),
        [
            [value if isinstance(value, str) else number(value) for value in row.values()]
            for row in rows
        ],
    )
    show.table(
        "Python in the pump, by own time (the profiler's own cost included)",
        ("function", "calls a message", "own µs a message"),
        (
            (
                one.name,
                f"{one.calls / seen.messages:.2f}",
                number(one.own_s / seen.messages * 1e6),
            )
            for one in seen.functions
        ),
    )


def _spent(one: Spent, messages: int) -> dict[str, str | float]:
    return {
        "step": one.step,
        "turns": float(one.turns),
        "µs": one.wall_s / messages * 1e6,
        "µs CPU here": one.cpu_s / messages * 1e6,
        "µs waiting for the store": one.waited_s / messages * 1e6,
        "statements": one.statements / messages,
        "round trips": one.round_trips / messages,
        "commits": one.commits / messages,
    }
