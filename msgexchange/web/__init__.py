"""The HTTP interface: an adapter that shows what the ports say (spec 1.5, 6.4)."""

from msgexchange.web.app import create_app
from msgexchange.web.deps import Entry, WebDeps
from msgexchange.web.server import CannotListen, RunningServer, start

__all__ = ["CannotListen", "Entry", "RunningServer", "WebDeps", "create_app", "start"]
