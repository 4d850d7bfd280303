"""Composition root: everything is built here and handed in."""

from msgexchange.app.main import main

__all__ = ["main"]
