"""Database addresses: which kinds are accepted, what may be shown, which are the same place."""

from pathlib import Path
from typing import Final

from pydantic import SecretStr
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

STORE_SCHEMES: Final = frozenset({"postgresql", "postgresql+psycopg", "sqlite"})
MAILBOX_SCHEMES: Final = frozenset(
    {"mysql", "mysql+pymysql", "mariadb", "mariadb+pymysql", "sqlite"}
)
MASK: Final = "********"

_SECRET_ENDINGS = ("password", "passwd", "secret", "token", "key.pem")
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}


def checked(dsn: SecretStr, schemes: frozenset[str]) -> SecretStr:
    """The DSN as it is; ``ValueError`` if it is none or of a kind that is not accepted."""
    try:
        url = make_url(dsn.get_secret_value())
    except (ArgumentError, ValueError) as exc:
        # The driver's text would repeat the DSN, password included.
        raise ValueError("not a DSN of the form SCHEME://USER:PASSWORD@HOST/DATABASE") from exc
    if url.drivername not in schemes:
        raise ValueError(f"scheme {url.drivername!r} is none of {', '.join(sorted(schemes))}")
    if not url.database:
        raise ValueError("the DSN names no database")
    return dsn


def masked(dsn: SecretStr) -> str:
    """The DSN as people may see it."""
    url = make_url(dsn.get_secret_value())
    hidden = {name: MASK for name in url.query if is_secret_name(name)}
    shown = url.update_query_dict(hidden)
    return shown.set(password=MASK if url.password else None).render_as_string(hide_password=False)


def holds_secret(dsn: str) -> bool:
    """Whether the DSN carries a password; also true of what cannot be read as a DSN."""
    try:
        url = make_url(dsn)
    except (ArgumentError, ValueError):
        return True
    return bool(url.password) or any(is_secret_name(name) for name in url.query)


def is_secret_name(name: str) -> bool:
    """Whether a driver's own setting of this name is to be kept from sight."""
    return name.lower().endswith(_SECRET_ENDINGS)


def is_embedded(dsn: SecretStr) -> bool:
    """Whether it is a file of ours and not a server."""
    return _backend(make_url(dsn.get_secret_value())) == "sqlite"


def same_place(one: SecretStr, other: SecretStr) -> bool:
    """Whether two DSNs lead to the same database, whoever logs in."""
    return _place(make_url(one.get_secret_value())) == _place(make_url(other.get_secret_value()))


def _place(url: URL) -> tuple[str, str, int | None, str]:
    backend = _backend(url).replace("mariadb", "mysql")
    database = url.database or ""
    if backend == "sqlite":
        database = str(Path(database).absolute())
    return backend, (url.host or "").lower(), url.port or _PORTS.get(backend), database


def _backend(url: URL) -> str:
    return url.get_backend_name()
