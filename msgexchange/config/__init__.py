"""Settings: read once, validated whole, frozen; nobody else reads the environment."""

from msgexchange.config.loading import load
from msgexchange.config.problem import ConfigError, Problem
from msgexchange.config.settings import Profile, Settings
from msgexchange.config.show import Row, Unconfirmed, rows, unconfirmed

__all__ = [
    "ConfigError",
    "Problem",
    "Profile",
    "Row",
    "Settings",
    "Unconfirmed",
    "load",
    "rows",
    "unconfirmed",
]
