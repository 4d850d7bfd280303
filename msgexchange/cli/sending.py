"""``send``: message files to a running msgexchange, as the legacy entry takes them."""

import urllib.error
import urllib.request
from pathlib import Path

import click

from msgexchange.cli import show
from msgexchange.cli.context import Failure, Misuse, Session

TIMEOUT_S = 30


@click.command(epilog="Example: run.py send plan.xml gate.xml")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--url", help="Where it runs; without it the address in the data folder's http.url.")
@click.option("--token", envvar="MSGEXCHANGE_HTTP__SEND_TOKEN", help="Bearer token, if one is set.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
@click.pass_obj
def send(
    session: Session, *, files: tuple[Path, ...], url: str | None, token: str | None, as_json: bool
) -> None:
    """Send each FILE to POST /cminmsgs/send and print the mailbox id it got."""
    target = (url or _address(session)).rstrip("/") + "/cminmsgs/send"
    if not target.startswith(("http://", "https://")):
        raise Misuse(f"{target} is no http address")
    answers = {str(file): int(_post(target, file, token)) for file in files}
    if as_json:
        show.as_json(answers)
        return
    for file, message_id in answers.items():
        click.echo(f"{file}: message {message_id}")


def _address(session: Session) -> str:
    file = session.data_dir / "http.url"
    if not file.is_file():
        raise Misuse(
            f"nothing says where msgexchange runs ({file} is missing): start it with "
            "`run.py serve`, or name it with --url"
        )
    return file.read_text().strip()


def _post(target: str, file: Path, token: str | None) -> str:
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        target, data=file.read_bytes(), headers={"Content-Type": "application/xml"}
    )
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return str(answer.read(), "utf-8")
    except urllib.error.HTTPError as refusal:
        body = refusal.read().decode(errors="replace")
        raise Failure(f"{file}: refused with {refusal.code}: {body}") from refusal
    except OSError as failure:
        raise Failure(f"{file}: {target} does not answer: {failure}") from failure
