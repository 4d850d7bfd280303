"""The command line as a whole."""

from pathlib import Path

import click

from msgexchange import __version__
from msgexchange.cli.auditing import audit
from msgexchange.cli.benching import bench
from msgexchange.cli.context import Backends, Failure, Misuse, Session
from msgexchange.cli.describing import catalogue, config
from msgexchange.cli.explaining import explain
from msgexchange.cli.flights import flight, flights
from msgexchange.cli.gaps import gaps
from msgexchange.cli.jobs import jobs
from msgexchange.cli.letters import dead, discard
from msgexchange.cli.redelivering import redeliver
from msgexchange.cli.replaying import replay
from msgexchange.cli.requesting import request, requests
from msgexchange.cli.running import demo, serve, store, verify
from msgexchange.cli.sending import send
from msgexchange.cli.simulating import simulate
from msgexchange.cli.status import head, status
from msgexchange.config import ConfigError
from msgexchange.ports import PortError


@click.group(
    invoke_without_command=True,
    epilog="Without a command it serves; without a configuration file that is the embedded "
    "profile, which needs no server. Exit status: 0 fine, 1 found something wrong, 2 wrong use.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Configuration file (TOML); see config.example.toml.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("msgexchange-data"),
    show_default=True,
    help="Folder of the embedded stores and of run-time files.",
)
@click.version_option(__version__, prog_name="msgexchange")
@click.pass_context
def main(context: click.Context, *, config_file: Path | None, data_dir: Path) -> None:
    """Reads an airport's message mailbox in strict order, keeps one state per flight, publishes
    every change to Kafka.
    """
    context.obj = Session(context.obj, config_file, data_dir)
    if context.invoked_subcommand is None:
        context.invoke(serve)


for command in (
    serve,
    demo,
    send,
    status,
    head,
    gaps,
    jobs,
    flights,
    flight,
    explain,
    dead,
    discard,
    replay,
    redeliver,
    audit,
    request,
    requests,
    verify,
    bench,
    catalogue,
    config,
    store,
    simulate,
):
    main.add_command(command)


def run(backends: Backends, arguments: list[str] | None = None) -> int:
    """Run one command line; the exit status."""
    try:
        answer = main.main(args=arguments, obj=backends, standalone_mode=False, prog_name="run.py")
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ConfigError as error:
        misuse = Misuse("\n".join(map(str, error.problems)))
        misuse.show()
        return misuse.exit_code
    except PortError as error:
        failure = Failure(str(error))
        failure.show()
        return failure.exit_code
    return answer if isinstance(answer, int) else 0
