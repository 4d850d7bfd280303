"""What the process of a data folder says of itself: role, outages, who waits for them."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from msgexchange.cli import show

TIMEOUT_S = 5
ADDRESS_FILE = "http.url"

Health: TypeAlias = Mapping[str, Any]
"""The document of ``GET /health/ready``."""


def health_of(data_dir: Path) -> Health | None:
    """None where no process runs, or none that answers."""
    file = data_dir / ADDRESS_FILE
    if not file.is_file():
        return None
    address = file.read_text().strip()
    if not address.startswith(("http://", "https://")):
        return None
    url = f"{address.rstrip('/')}/health/ready"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - checked above
            return _document(answer.read())
    except urllib.error.HTTPError as not_ready:
        return _document(not_ready.read())
    except OSError:
        return None


def _document(body: bytes) -> Health | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "leadership" in found else None


def show_process(health: Health | None) -> None:
    """Its role, every dependency that is down, and who waits behind an open breaker."""
    if health is None:
        show.pairs("process", {"runs": "not here, or it does not answer"})
        return
    leadership = health["leadership"]
    show.pairs(
        "process",
        {
            "owner": leadership["owner"],
            "role": leadership["role"],
            "ready": "yes" if health["ready"] else "no",
        },
    )
    down = [(name, one) for name, one in health["dependencies"].items() if not one["ok"]]
    if down:
        show.table(
            "down",
            ("dependency", "since", "reason"),
            ((name, one["since"], one["reason"]) for name, one in down),
        )
    if health["breakers"]:
        show.table(
            "waiting",
            ("actor", "for", "since", "tries", "reason"),
            (
                (actor, one["dependency"], one["since"], one["failures"], one["reason"])
                for actor, one in health["breakers"].items()
            ),
        )
